// The ladder with an arrow for each packet, if few enough are in view: arrows, their names, and waiting ranks.
function drawArrows(g, view, visible) {
  drawWaits(g, view);
  const {x, y} = view;
  const hot = store.selected.messages.size > 0;
  g.font = '11px ' + FONT;
  const isMarked = (i) => store.selected.messages.has(S.message[lanes.steps[i]]);
  const above = roomAbove(view, visible), aboveMarked = hot ? roomAbove(view, visible.filter(isMarked)) : [];
  const names = [];
  let nth = 0;
  visible.forEach((i, k) => {
    const s = lanes.steps[i], y0 = y(lanes.begin[i]), marked = isMarked(i);
    const band = Math.max(y(lanes.end[i]) - y0, 0);
    const x1 = x(lanes.from[i]), x2 = x(lanes.to[i]);
    g.globalAlpha = hot && !marked ? 0.28 : 1;
    if (isFocus(s)) drawHalo(g, x1, x2, y0, band);
    drawPacket(g, S.type[s], S.flags[s], x1, x2, y0, band, above[k] < 5 && !marked);
    if (marked ? aboveMarked[nth++] >= 13 : !hot && above[k] >= 13) names.push([s, y0, x1, x2]);
  });
  g.globalAlpha = 1;
  for (const [s, y0, x1, x2] of names) nameArrow(g, view, s, y0, x1, x2);
}

// roomAbove returns the free space above each packet in pixels.
function roomAbove(view, visible) {
  const last = new Float64Array(lanes.ranks.length + 1).fill(-Infinity);
  return visible.map((i) => {
    const a = Math.min(lanes.from[i], lanes.to[i]), b = Math.max(lanes.from[i], lanes.to[i], a + 1);
    const y = view.y(lanes.begin[i]), low = view.y(lanes.end[i]);
    let room = y - view.top;
    for (let k = a; k < b; k++) {
      room = Math.min(room, y - last[k]);
      last[k] = Math.max(last[k], low);
    }
    return room;
  });
}

function isFocus(s) {
  const sel = store.selected;
  return s === ladder.cursor || s === sel.step || sel.packets.size > 0 && sel.packets.has(S.packet[s]) && !(S.flags[s] & MISSING);
}
function drawHalo(g, x1, x2, y, band) {
  g.save();
  g.globalAlpha = 1;
  g.fillStyle = colours.select;
  g.strokeStyle = colours.accent;
  g.lineWidth = 1;
  g.beginPath();
  if (x1 === x2) x2 += 26;
  g.roundRect(Math.min(x1, x2) - 4, y - 9, Math.abs(x2 - x1) + 8, 18 + band, 6);
  g.fill();
  g.stroke();
  g.restore();
}

function nameArrow(g, view, s, y0, x1, x2) {
  const wide = Math.abs(x2 - x1) || 120;
  const name = S.types[S.type[s]], isData = name === 'DATA';
  const note = S.flags[s] & DUPLICATE ? ' 2×' : '';
  const m = S.message[s];
  const choices = isData
    ? [`DATA ${count(M.words[m])} words, ${plural(S.packets[s], 'datagram')}, ${count(S.bytes[s])} bytes`, `DATA ${count(M.words[m])} words, ${S.packets[s]} dg`, `DATA ${count(M.words[m])} w`, 'DATA']
    : [name, SHORT[name] || name];
  const text = choices.find((c) => g.measureText(c + note).width < wide - 42);
  if (!text) return;
  const mid = x1 === x2 ? x1 + 40 : (x1 + x2) / 2;
  if (mid < view.left || mid > view.right) return;
  label(g, text + note, mid, y0 - 7, S.flags[s] & MISSING ? colours.soft : typeColour(S.type[s]));
}

// drawWaits draws the waiting rank in each phase of the messages in view.
function drawWaits(g, view) {
  const list = lanes.messages, hot = store.selected.messages.size > 0;
  const from = firstAtLeast(list.endMost, view.u0), to = firstAtLeast(list.begin, view.u1);
  let room = 2000;
  for (let k = from; k < to && room > 0; k++) {
    if (list.end[k] < view.u0) continue;
    room--;
    const m = list.list[k];
    g.globalAlpha = hot && !store.selected.messages.has(m) ? 0.25 : 0.9;
    drawMessageWaits(g, view, m);
  }
  g.globalAlpha = 1;
}

function drawMessageWaits(g, view, m) {
  const first = [NaN, NaN, NaN, NaN];
  let dataEnd = NaN;
  for (let s = M.first[m]; s < M.first[m + 1]; s++) {
    const type = S.type[s];
    if (type > 3 || !Number.isNaN(first[type])) continue;
    first[type] = S.time[s];
    if (type === 2) dataEnd = S.end[s];
  }
  const src = view.x(lanes.laneOf.get(M.src[m])), dst = view.x(lanes.laneOf.get(M.dst[m]));
  const bar = (lane, t0, t1, phase) => {
    if (!(t1 > t0)) return;
    const y0 = Math.max(view.y(store.scale.place(t0)), view.top - 2), y1 = Math.min(view.y(store.scale.place(t1)), view.bottom + 2);
    if (y1 - y0 > 3) drawWait(g, lane, y0, y1, 7, colours.phase[phase]);
  };
  bar(src, first[0], first[1], 0);
  bar(dst, first[1], first[2], 1);
  bar(src, dataEnd, first[3], 2);
}

// drawOpenWaits draws the ranks that wait at the end of the recording, and the packets they wait for.
function drawOpenWaits(g, view) {
  const used = new Map();
  const end = view.y(store.scale.place(doc.span));
  g.font = '600 11px ' + FONT;
  let room = 300;
  for (const [m, w] of waitOf) {
    if (!lanes.shown[m] || room-- <= 0) continue;
    const lane = lanes.laneOf.get(w.who);
    const y0 = Math.max(view.y(store.scale.place(w.since)), view.top), y1 = Math.min(end, view.bottom);
    if (lane === undefined || y1 <= y0) continue;
    const nth = used.get(lane) || 0;
    used.set(lane, nth + 1);
    const x = view.x(lane) + nth * 9;
    drawWait(g, x, y0, y1, 8, colours.bad);
    if (y1 - y0 < 18 + nth * 16) continue;
    const at = y0 + 16 + nth * 16;
    const texts = [`rank ${w.who} waits for ${w.what} from rank ${w.on}`, `waits for ${w.what}`, 'waits'];
    for (const text of texts) {
      const wide = g.measureText(text).width;
      const right = x + 12 + wide < view.right, left = x - 12 - wide > view.left;
      if (!right && !left) continue;
      label(g, text, right ? x + 12 : x - 12, at, colours.bad, right ? 'left' : 'right');
      break;
    }
  }
}
