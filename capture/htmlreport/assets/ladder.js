// The ladder diagram: its view, and the drawing of a frame.
const MOST_ARROWS = 900;
const ladder = {
  canvas: byId('ladder-canvas'), u0: 0, u1: 1, shift: 0, cursor: -1,
  width: 0, height: 0, mode: '', frames: 0, lastFrame: 0, worstFrame: 0, markers: [],
};

// Margins of the drawing in pixels.
function margins() {
  return {left: ladder.width < 500 ? 62 : 92, right: 24, top: 30, bottom: 6};
}
function wholeView() {
  const length = store.scale.length;
  return [-0.03 * length, 1.03 * length];
}
// setView shows the axis from u0 to u1, limited to its ends.
function setView(u0, u1) {
  const [low, high] = wholeView();
  const least = store.scale.unit * 4;
  let span = Math.min(Math.max(u1 - u0, least), Math.max(high - low, least));
  let from = (u0 + u1 - span) / 2;
  from = Math.max(low, Math.min(from, high - span));
  ladder.u0 = from;
  ladder.u1 = from + span;
  redrawLadder();
  store.notify('view');
}
function fitView() {
  ladder.shift = 0;
  setView(...wholeView());
}
// zoomView makes the view factor times as long. The point at place, from 0 to 1, does not move.
function zoomView(factor, place = 0.5) {
  const {u0, u1} = ladder, u = u0 + (u1 - u0) * place;
  const span = (u1 - u0) * factor;
  setView(u - span * place, u + span * (1 - place));
}
function panView(part) {
  const by = (ladder.u1 - ladder.u0) * part;
  setView(ladder.u0 + by, ladder.u1 + by);
}

// geometry converts lanes and axis positions to pixels.
function geometry() {
  const m = margins(), w = ladder.width, h = ladder.height;
  const n = lanes.ranks.length, room = w - m.left - m.right;
  const laneWidth = n > 1 ? Math.max((room - 50) / (n - 1), 10) : room / 2;
  const overhang = Math.max(0, laneWidth * (n - 1) + 50 - room);
  ladder.shift = Math.max(0, Math.min(ladder.shift, overhang));
  const first = m.left + (n > 1 ? 25 : room / 3) - ladder.shift;
  const k = (h - m.top - m.bottom) / (ladder.u1 - ladder.u0);
  return {
    laneWidth, overhang, left: m.left, right: w - m.right, top: m.top, bottom: h - m.bottom, u0: ladder.u0, u1: ladder.u1, k,
    x: (lane) => first + lane * laneWidth, y: (u) => m.top + (u - ladder.u0) * k, u: (y) => ladder.u0 + (y - m.top) / k,
    lane: (x) => (x - first) / laneWidth,
  };
}

const redrawLadder = later(drawLadder);

function drawLadder() {
  const started = performance.now();
  const {g, w, h} = sized(ladder.canvas);
  Object.assign(ladder, {width: w, height: h});
  if (lanes.ranks.length > 0) drawMessages(g);
  else {
    g.font = '14px ' + FONT;
    label(g, 'There are no messages to draw.', w / 2, h / 2, colours.soft);
  }
  ladder.frames++;
  ladder.lastFrame = performance.now() - started;
  ladder.worstFrame = Math.max(ladder.worstFrame, ladder.lastFrame);
}

function drawMessages(g) {
  const view = geometry();
  const gapNames = drawAxis(g, view);
  g.save();
  g.beginPath();
  g.rect(view.left, view.top, view.right - view.left, view.bottom - view.top);
  g.clip();
  drawLifelines(g, view);
  const [from, to] = stepsBetween(view.u0, view.u1);
  const visible = [];
  let n = 0;
  for (let i = from; i < to; i++) {
    if (lanes.end[i] < view.u0) continue;
    if (++n <= MOST_ARROWS) visible.push(i);
  }
  ladder.mode = n > MOST_ARROWS ? 'density' : 'arrows';
  if (ladder.mode === 'density') drawDensity(g, view, from, to);
  else drawArrows(g, view, visible);
  g.font = '11px ' + FONT;
  for (const [text, y] of gapNames) label(g, text, view.right - 8, y, colours.soft, 'right');
  drawOpenWaits(g, view);
  g.restore();
  drawRanks(g, view);
  drawFindingMarks(g, view);
  const drawnTime = store.scale.time(view.u1) - store.scale.time(view.u0);
  byId('ladder-mode').textContent = `${plural(n, 'packet')} in ${duration(drawnTime)}` +
    (ladder.mode === 'density' ? ': shown as density, zoom in for arrows' : '') +
    (S.n === 0 ? ' (no packets were kept for the diagram)' : '');
}

function drawAxis(g, view) {
  g.font = '11px ' + FONT;
  const {times, step} = tickTimes(store.scale, view.u0, view.u1, view.bottom - view.top, 56);
  g.strokeStyle = colours.faint;
  g.lineWidth = 1;
  for (const t of times) {
    const y = view.y(store.scale.place(t));
    if (y < view.top || y > view.bottom) continue;
    g.beginPath(); g.moveTo(view.left, y); g.lineTo(view.right, y); g.stroke();
    g.fillStyle = colours.soft;
    g.textAlign = 'right';
    g.fillText(moment(t, step), view.left - 7, Math.max(y, view.top + 6));
  }
  return drawGaps(g, view);
}

// drawGaps labels the long gaps without packets, which the compressed axis shortens. It returns the labels, which are
// drawn over the lifelines.
function drawGaps(g, view) {
  const {scale} = store, gapNames = [];
  if (!scale.compressed) return gapNames;
  const list = scale.gaps;
  let lo = 0, hi = list.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (scale.places[list[mid] + 1] < view.u0) lo = mid + 1; else hi = mid;
  }
  for (let k = lo, drawn = 0; k < list.length && drawn < 60; k++) {
    const i = list[k];
    if (scale.places[i] > view.u1) break;
    const y0 = Math.max(view.y(scale.places[i]), view.top), y1 = Math.min(view.y(scale.places[i + 1]), view.bottom);
    if (y1 - y0 < 20) continue;
    drawn++;
    g.fillStyle = colours.faint;
    g.globalAlpha = 0.75;
    g.fillRect(view.left, y0 + 3, view.right - view.left, y1 - y0 - 6);
    g.globalAlpha = 1;
    gapNames.push([duration(axis[i + 1] - axis[i]) + (ladder.width < 500 ? '' : ' without packets'), (y0 + y1) / 2]);
  }
  return gapNames;
}

function drawLifelines(g, view) {
  g.strokeStyle = colours.line;
  g.lineWidth = 1.5;
  const a = Math.max(0, Math.floor(view.lane(view.left))), b = Math.min(lanes.ranks.length - 1, Math.ceil(view.lane(view.right)));
  g.beginPath();
  for (let i = a; i <= b; i++) { g.moveTo(view.x(i), view.top); g.lineTo(view.x(i), view.bottom); }
  g.stroke();
  for (const [u, above] of [[store.scale.place(0), true], [store.scale.place(doc.span), false]]) {
    const y = view.y(u);
    g.fillStyle = colours.bg;
    if (above && y - 12 > view.top) g.fillRect(view.left, view.top, view.right - view.left, y - view.top - 12);
    if (!above && y + 12 < view.bottom) g.fillRect(view.left, y + 12, view.right - view.left, view.bottom - y);
  }
}

function drawRanks(g, view) {
  g.font = '600 12px ' + FONT;
  g.textAlign = 'center';
  const full = view.laneWidth > 58, every = Math.max(1, Math.ceil(26 / view.laneWidth));
  for (let i = 0; i < lanes.ranks.length; i += every) {
    const x = view.x(i);
    if (x < view.left - 4 || x > view.right + 4) continue;
    g.fillStyle = colours.ink;
    g.fillText(full ? 'rank ' + lanes.ranks[i] : String(lanes.ranks[i]), x, 15);
  }
  g.fillStyle = colours.soft;
  g.textAlign = 'right';
  g.font = '11px ' + FONT;
  g.fillText(full ? 'time' : 'rank', view.left - 7, 15);
  g.strokeStyle = colours.line;
  g.lineWidth = 1;
  g.beginPath(); g.moveTo(0, view.top - 0.5); g.lineTo(ladder.width, view.top - 0.5); g.stroke();
}

// drawFindingMarks draws the findings next to the ladder, one mark for several at the same height.
function drawFindingMarks(g, view) {
  const bins = new Map();
  for (let f = 0; f < F.n; f++) {
    const y = view.y(store.scale.place(F.time[f]));
    if (y < view.top || y > view.bottom + 1) continue;
    const bin = Math.floor(y / 12);
    if (!bins.has(bin)) bins.set(bin, {y: Math.min(y, view.bottom - 6), findings: [], level: 2});
    const b = bins.get(bin);
    b.findings.push(f);
    b.level = Math.min(b.level, F.kinds[F.kind[f]].level);
  }
  ladder.markers = [...bins.values()];
  for (const b of ladder.markers) {
    const on = b.findings.includes(store.selected.finding);
    if (on) {
      g.fillStyle = colours.select;
      g.strokeStyle = colours.accent;
      g.lineWidth = 1.5;
      g.beginPath(); g.arc(view.right + 12, b.y, 9, 0, 2 * Math.PI); g.fill(); g.stroke();
    }
    levelMark(g, b.level, view.right + 12, b.y, b.findings.length > 1 ? 5.5 : 4);
  }
}
