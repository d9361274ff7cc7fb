// The ladder if too many packets are in view: the number of packets in each cell. It needs a single pass over the
// packets in view.
const ROW = 2; // pixels

// density counts the packets in view in cells, which are one row high and as wide as the distance between two
// lifelines.
function density(view, from, to) {
  const rows = Math.ceil((view.bottom - view.top) / ROW), cols = Math.max(lanes.ranks.length - 1, 1);
  const diff = new Int32Array(rows * (cols + 1));
  const wrong = new Map();
  const k = (view.bottom - view.top) / (view.u1 - view.u0) / ROW;
  const {begin, end, steps} = lanes;
  for (let i = from; i < to; i++) {
    if (end[i] < view.u0) continue;
    const row = Math.min(Math.max(0, (begin[i] - view.u0) * k | 0), rows - 1);
    const a = lanes.from[i], b = lanes.to[i];
    const low = a < b ? a : b, high = a < b ? b : a;
    diff[row * (cols + 1) + Math.min(low, cols - 1)]++;
    diff[row * (cols + 1) + (high > low ? high : Math.min(low + 1, cols))]--;
    const flags = S.flags[steps[i]];
    if (flags & ~FROM_SENDER && wrong.size < 3000) {
      const cell = (row >> 2) * 8192 + low;
      wrong.set(cell, (wrong.get(cell) || 0) | flags);
    }
  }
  const counts = new Int32Array(rows * cols);
  let most = 0;
  for (let r = 0; r < rows; r++) {
    for (let c = 0, sum = 0; c < cols; c++) {
      sum += diff[r * (cols + 1) + c];
      counts[r * cols + c] = sum;
      if (sum > most) most = sum;
    }
  }
  return {rows, cols, counts, most, wrong};
}

function drawDensity(g, view, from, to) {
  const d = density(view, from, to);
  const image = new ImageData(d.cols, d.rows);
  const [red, green, blue] = rgb(colours.heat);
  for (let i = 0; i < d.counts.length; i++) {
    if (!d.counts[i]) continue;
    image.data[4 * i] = red;
    image.data[4 * i + 1] = green;
    image.data[4 * i + 2] = blue;
    image.data[4 * i + 3] = 30 + 225 * Math.sqrt(d.counts[i] / d.most);
  }
  const sheet = drawDensity.sheet ||= document.createElement('canvas');
  sheet.width = d.cols;
  sheet.height = d.rows;
  sheet.getContext('2d').putImageData(image, 0, 0);
  g.imageSmoothingEnabled = false;
  const hot = store.selected.messages.size > 0;
  g.globalAlpha = hot ? 0.5 : 1;
  const wide = lanes.ranks.length > 1 ? view.laneWidth * d.cols : 60;
  g.drawImage(sheet, view.x(0), view.top, wide, d.rows * ROW);
  g.globalAlpha = 1;
  for (const [cell, flags] of d.wrong) {
    const x = view.x(cell % 8192) + Math.min(view.laneWidth / 2, 40), y = view.top + (Math.floor(cell / 8192) * 4 + 2) * ROW;
    if (flags & (LOST | MISSING)) drawCross(g, x, y);
    else drawLoop(g, x, y, colours.warn);
  }
  if (hot) drawSelectedOver(g, view);
}

// drawSelectedOver draws the packets of the selected messages over the density.
function drawSelectedOver(g, view) {
  let room = 400;
  for (const m of store.selected.messages) {
    if (!lanes.shown[m]) continue;
    for (let s = M.first[m]; s < M.first[m + 1] && room > 0; s++) {
      const y = view.y(store.scale.place(S.time[s]));
      if (y < view.top || y > view.bottom) continue;
      room--;
      const x1 = view.x(lanes.laneOf.get(stepFrom(s))), x2 = view.x(lanes.laneOf.get(stepTo(s)));
      if (isFocus(s)) drawHalo(g, x1, x2, y, 0);
      drawPacket(g, S.type[s], S.flags[s], x1, x2, y, 0);
    }
  }
}
