// Mouse, touch and keyboard on the ladder.

// stepAt returns the step nearest to a point, or -1.
function stepAt(px, py) {
  if (ladder.mode !== 'arrows') return -1;
  const view = geometry(), reach = 7;
  const [from, to] = stepsBetween(view.u(py - reach), view.u(py + reach));
  let best = -1, least = Infinity;
  for (let i = from; i < to; i++) {
    const x1 = view.x(lanes.from[i]), x2 = x1 === view.x(lanes.to[i]) ? x1 + 26 : view.x(lanes.to[i]);
    if (px < Math.min(x1, x2) - 4 || px > Math.max(x1, x2) + 4) continue;
    const y0 = view.y(lanes.begin[i]), y1 = view.y(lanes.end[i]);
    const off = py < y0 ? y0 - py : py > y1 ? py - y1 : 0;
    // The shorter one of several arrows at the same height is harder to hit.
    const cost = off + Math.abs(x2 - x1) / 1e5 + (y1 - y0) / 1e4;
    if (off <= reach && cost < least) { least = cost; best = lanes.steps[i]; }
  }
  return best;
}
function markerAt(px, py) {
  const view = geometry();
  if (px < view.right) return null;
  return ladder.markers.find((b) => Math.abs(b.y - py) < 9) || null;
}

function hoverLadder(px, py, clientX, clientY) {
  const marker = markerAt(px, py), s = marker ? -1 : stepAt(px, py);
  ladder.canvas.classList.toggle('over', s >= 0 || marker !== null);
  if (marker) {
    const f = marker.findings[0], more = marker.findings.length - 1;
    tooltip.show(clientX, clientY, words(F.kinds[F.kind[f]].name), [['Time', exact(F.time[f])], ['Text', F.text[f]]], more ? `and ${plural(more, 'more finding')} here` : '');
  } else if (s >= 0) tooltip.show(clientX, clientY, stepTitle(s), stepFields(s));
  else if (ladder.mode === 'density') hoverDensity(px, py, clientX, clientY);
  else tooltip.hide();
}

function hoverDensity(px, py, clientX, clientY) {
  const view = geometry();
  if (px < view.left || px > view.right || py < view.top) return tooltip.hide();
  const u0 = view.u(py - 4), u1 = view.u(py + 4), lane = view.lane(px);
  const [from, to] = stepsBetween(u0, u1);
  let n = 0, wrong = 0;
  for (let i = from; i < to; i++) {
    if (lanes.end[i] < u0 || lane < Math.min(lanes.from[i], lanes.to[i]) || lane > Math.max(lanes.from[i], lanes.to[i])) continue;
    n++;
    if (S.flags[lanes.steps[i]] & ~FROM_SENDER) wrong++;
  }
  if (n === 0) return tooltip.hide();
  const t0 = store.scale.time(u0), t1 = store.scale.time(u1);
  tooltip.show(clientX, clientY, plural(n, 'packet'), [['From', moment(t0, t1 - t0)], ['To', moment(t1, t1 - t0)], ['Retransmitted or lost', wrong || '']], 'Double-click to zoom in here.');
}

// stepCursor moves the keyboard cursor to the next or previous packet.
function stepCursor(by) {
  const n = lanes.steps.length;
  if (n === 0) return;
  let i = lanes.steps.indexOf(ladder.cursor);
  const view = geometry();
  if (i < 0 || lanes.begin[i] < view.u0 || lanes.begin[i] > view.u1) i = firstAtLeast(lanes.begin, by > 0 ? view.u0 : view.u1) - (by > 0 ? 1 : 0);
  i = Math.min(Math.max(i + by, 0), n - 1);
  ladder.cursor = lanes.steps[i];
  if (ladder.mode === 'density') showAround(i, i);
  else if (lanes.begin[i] < view.u0 || lanes.begin[i] > view.u1) panView(by * 0.6);
  redrawLadder();
  requestAnimationFrame(() => {
    const at = geometry(), box = ladder.canvas.getBoundingClientRect();
    const lane = (lanes.from[i] + lanes.to[i]) / 2;
    tooltip.show(box.left + at.x(lane), box.top + at.y(lanes.begin[i]), stepTitle(ladder.cursor), stepFields(ladder.cursor));
    byId('ladder-status').textContent = `${stepTitle(ladder.cursor)}, ${exact(S.time[ladder.cursor])}, ${noteOf(ladder.cursor)}`;
  });
}

// showAround shows the steps from index i to index j and a margin around them, with no more steps than can be drawn as
// arrows.
function showAround(i, j) {
  const n = lanes.steps.length;
  let u0 = lanes.begin[i], u1 = Math.max(lanes.end[j], u0);
  const room = Math.max((u1 - u0) * 0.25, store.scale.unit * 8);
  u0 -= room;
  u1 += room;
  const [from, to] = stepsBetween(u0, u1);
  if (to - from > MOST_ARROWS * 0.8) {
    u0 = lanes.begin[Math.max(0, i - 60)];
    u1 = lanes.begin[Math.min(n - 1, i + 60)];
  }
  setView(u0, u1);
}

// jump shows the selection.
function jump() {
  const sel = store.selected;
  let low = Infinity, high = -Infinity, at = Infinity, few = 0;
  const take = (s) => { low = Math.min(low, S.time[s]); high = Math.max(high, S.end[s]); };
  for (const p of sel.packets) {
    const s = stepOfPacket(p);
    if (s >= 0) at = Math.min(at, S.time[s]);
  }
  for (const m of sel.messages) {
    if (few++ > 32) break;
    for (let s = M.first[m]; s < M.first[m + 1]; s++) take(s);
  }
  if (sel.finding >= 0) {
    const t = F.time[sel.finding];
    low = Math.min(low, t);
    high = Math.max(high, t);
  }
  if (low === Infinity) return;
  const box = byId('ladderbox').getBoundingClientRect();
  if (box.bottom < 160 || box.top > innerHeight - 160) byId('ladder').scrollIntoView({block: 'start'});
  const scale = store.scale;
  let u0 = scale.place(low), u1 = scale.place(high);
  const room = Math.max((u1 - u0) * 0.3, scale.compressed ? scale.unit * 3 : 2e4);
  const [from, to] = stepsBetween(u0 - room, u1 + room);
  if (to - from > MOST_ARROWS * 0.8) {
    const i = Math.min(firstAtLeast(lanes.begin, scale.place(at === Infinity ? low : at)), lanes.steps.length - 1);
    showAround(i, i);
  } else setView(u0 - room, u1 + room);
  const view = geometry();
  for (const m of sel.messages) {
    const x = view.x(lanes.laneOf.get(M.src[m]));
    if (x < view.left || x > view.right) { ladder.shift += x - (view.left + view.right) / 2; redrawLadder(); }
    break;
  }
}

function clickLadder(px, py) {
  const marker = markerAt(px, py);
  if (marker) {
    const i = marker.findings.indexOf(store.selected.finding);
    return selectFinding(marker.findings[(i + 1) % marker.findings.length]);
  }
  const s = stepAt(px, py);
  if (s >= 0) selectMessage(S.message[s], s);
  else if (store.selected.messages.size) selectNothing();
}

function listenToLadder() {
  const canvas = ladder.canvas, pointers = new Map();
  let moved = 0, pinch = 0;
  const point = (e) => { const box = canvas.getBoundingClientRect(); return [e.clientX - box.left, e.clientY - box.top]; };
  const spread = () => { const [a, b] = [...pointers.values()]; return Math.hypot(a[0] - b[0], a[1] - b[1]); };
  canvas.addEventListener('pointerdown', (e) => {
    canvas.setPointerCapture(e.pointerId);
    pointers.set(e.pointerId, point(e));
    moved = 0;
    if (pointers.size === 2) pinch = spread();
  });
  canvas.addEventListener('pointermove', (e) => {
    const [x, y] = point(e);
    if (!pointers.has(e.pointerId)) return hoverLadder(x, y, e.clientX, e.clientY);
    const [x0, y0] = pointers.get(e.pointerId);
    pointers.set(e.pointerId, [x, y]);
    moved += Math.abs(x - x0) + Math.abs(y - y0);
    if (moved < 5) return;
    tooltip.hide();
    canvas.classList.add('dragging');
    const view = geometry();
    if (pointers.size === 2) {
      const now = spread(), mid = [...pointers.values()].reduce((sum, p) => sum + p[1] / 2, 0);
      if (now > 10 && pinch > 10) zoomView(pinch / now, (mid - view.top) / (view.bottom - view.top));
      pinch = now;
    } else {
      ladder.shift -= x - x0;
      setView(ladder.u0 - (y - y0) / view.k, ladder.u1 - (y - y0) / view.k);
    }
  });
  const up = (e) => {
    if (!pointers.delete(e.pointerId)) return;
    canvas.classList.remove('dragging');
    if (e.type === 'pointerup' && moved < 5) {
      const [x, y] = point(e);
      clickLadder(x, y);
      if (e.pointerType === 'touch') hoverLadder(x, y, e.clientX, e.clientY);
    }
  };
  canvas.addEventListener('pointerup', up);
  canvas.addEventListener('pointercancel', up);
  canvas.addEventListener('pointerleave', () => tooltip.hide());
  canvas.addEventListener('blur', () => { tooltip.hide(); ladder.cursor = -1; redrawLadder(); });
  canvas.addEventListener('dblclick', (e) => {
    const view = geometry();
    zoomView(0.3, (point(e)[1] - view.top) / (view.bottom - view.top));
  });
  // A wheel gesture that scrolls the page continues to scroll it when the diagram moves under the pointer, or when the
  // diagram cannot be zoomed out any further.
  let scrolled = -Infinity;
  addEventListener('scroll', () => { scrolled = performance.now(); tooltip.hide(); }, {passive: true});
  canvas.addEventListener('wheel', (e) => {
    const [low, high] = wholeView();
    const all = ladder.u1 - ladder.u0 >= (high - low) * 0.999;
    if (!e.ctrlKey && (performance.now() - scrolled < 200 || all && e.deltaY > 0)) return;
    e.preventDefault();
    const view = geometry(), lines = e.deltaMode === 1 ? 16 : 1;
    const dy = e.deltaY * lines, dx = (e.shiftKey && !e.deltaX ? e.deltaY : e.deltaX) * lines;
    if (e.shiftKey || Math.abs(dx) > Math.abs(dy)) {
      if (view.overhang > 0) ladder.shift += dx;
      else panView(dx / ladder.height);
      redrawLadder();
    } else zoomView(Math.exp(Math.max(-300, Math.min(dy, 300)) * (e.ctrlKey ? 0.01 : 0.0022)), (point(e)[1] - view.top) / (view.bottom - view.top));
  }, {passive: false});
  const keys = {
    '+': () => zoomView(0.6), '=': () => zoomView(0.6), '-': () => zoomView(1 / 0.6), '_': () => zoomView(1 / 0.6), '0': fitView,
    PageUp: () => panView(-0.7), PageDown: () => panView(0.7), ArrowUp: () => stepCursor(-1), ArrowDown: () => stepCursor(1),
    ArrowLeft: () => { ladder.shift -= 60; redrawLadder(); }, ArrowRight: () => { ladder.shift += 60; redrawLadder(); },
    Home: () => setView(wholeView()[0], wholeView()[0] + ladder.u1 - ladder.u0), End: () => setView(wholeView()[1] - ladder.u1 + ladder.u0, wholeView()[1]),
    Enter: () => ladder.cursor >= 0 && selectMessage(S.message[ladder.cursor], ladder.cursor),
    Escape: () => { tooltip.hide(); selectNothing(); },
  };
  canvas.addEventListener('keydown', (e) => {
    if (!keys[e.key] || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    keys[e.key]();
  });
  const button = (id, f) => byId(id).addEventListener('click', f);
  button('zoom-in', () => zoomView(0.5));
  button('zoom-out', () => zoomView(2));
  button('pan-up', () => panView(-0.5));
  button('pan-down', () => panView(0.5));
  button('fit', fitView);
  byId('compress').addEventListener('change', (e) => setCompressed(e.target.checked));
}
