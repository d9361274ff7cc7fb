// The two charts of a phase: the distribution of its times, and their course over the recording.
const BINS = 10; // per power of ten

// timeDomain returns the range of powers of ten that contains all times.
function timeDomain(phases) {
  let low = Infinity, high = 0;
  for (const p of phases) {
    for (const m of store.messages) {
      const t = p[m];
      if (t > 0 && t < low) low = t;
      if (t > high) high = t;
    }
  }
  if (low > high) return [3, 6];
  const a = Math.floor(Math.log10(low)), b = Math.ceil(Math.log10(high) + 1e-9);
  return [a, Math.max(b, a + 1)];
}
function powerTicks(g, domain, along) {
  for (let p = domain[0]; p <= domain[1]; p++) along(p, shortPower(p));
}
function shortPower(p) {
  const unit = p < 3 ? 'ns' : p < 6 ? 'µs' : p < 9 ? 'ms' : 's';
  return 10 ** (p - Math.min(Math.floor(p / 3), 3) * 3) + ' ' + unit;
}

// summaryOf returns the quantiles from the table of pairs, which include messages that are not listed.
function summaryOf(phase) {
  const list = [];
  for (const m of store.messages) if (!Number.isNaN(M.phases[phase][m])) list.push(M.phases[phase][m]);
  const sorted = Float64Array.from(list).sort(), n = sorted.length;
  const pair = doc.pairs.find((p) => store.pair === (p.src < 0 ? '' : p.src + '>' + p.dst)) || doc.pairs[0];
  const [all, p50, p90, p99, max] = pair.phases[phase].map((x, i, row) => i === 0 || row[0] ? x : NaN);
  return {n, all, p50, p90, p99, max, sorted};
}

function drawHistogram(canvas, phase, summary, domain) {
  const {g, w, h} = sized(canvas);
  const left = 6, right = w - 6, top = 20, bottom = h - 20;
  const bins = new Float64Array((domain[1] - domain[0]) * BINS);
  const x = (t) => left + (Math.log10(Math.max(t, 10 ** domain[0])) - domain[0]) / (domain[1] - domain[0]) * (right - left);
  for (const t of summary.sorted) bins[Math.min(bins.length - 1, Math.max(0, Math.floor((Math.log10(Math.max(t, 1e-9)) - domain[0]) * BINS)))]++;
  const most = Math.max(...bins, 1);
  g.font = '11px ' + FONT;
  g.strokeStyle = colours.line;
  g.lineWidth = 1;
  powerTicks(g, domain, (p, text) => {
    const at = x(10 ** p);
    g.beginPath(); g.moveTo(at, top); g.lineTo(at, bottom + 3); g.stroke();
    g.fillStyle = colours.soft;
    g.textAlign = p === domain[0] ? 'left' : p === domain[1] ? 'right' : 'center';
    g.fillText(text, at, bottom + 11);
  });
  g.fillStyle = colours.phase[phase];
  const wide = (right - left) / bins.length;
  for (let i = 0; i < bins.length; i++) {
    if (!bins[i]) continue;
    // A single message in 100,000 is still visible.
    const tall = Math.max(2, bins[i] / most * (bottom - top - 2));
    g.fillRect(left + i * wide + 0.5, bottom - tall, Math.max(wide - 1, 1), tall);
  }
  g.beginPath(); g.moveTo(left, bottom + 0.5); g.lineTo(right, bottom + 0.5); g.stroke();
  if (summary.n) drawQuantiles(g, summary, x, top, bottom, right);
  else { g.textAlign = 'center'; g.fillStyle = colours.soft; g.fillText('not recorded', (left + right) / 2, (top + bottom) / 2); }
  return {bins, left, wide, domain};
}

function drawQuantiles(g, summary, x, top, bottom, right) {
  let taken = -Infinity;
  g.strokeStyle = colours.ink;
  g.fillStyle = colours.ink;
  g.textAlign = 'left';
  g.lineWidth = 1.2;
  for (const [name, dash] of [['p50', []], ['p90', [5, 3]], ['p99', [2, 3]]]) {
    const at = x(summary[name]);
    g.setLineDash(dash);
    g.beginPath(); g.moveTo(at, top - 4); g.lineTo(at, bottom); g.stroke();
    const wide = g.measureText(name).width, from = Math.min(Math.max(at - wide / 2, taken + 6), right - wide);
    if (from < taken + 3) continue;
    g.fillText(name, from, 8);
    taken = from + wide;
  }
  g.setLineDash([]);
}

// drawTimeline draws a dot for each message or, where there are many, their number at each position.
function drawTimeline(canvas, phase, domain) {
  const {g, w, h} = sized(canvas);
  const chart = {left: 52, right: w - 8, top: 8, bottom: h - 20, domain};
  const {left, right, top, bottom} = chart, span = Math.max(doc.span, 1), times = M.phases[phase];
  chart.x = (t) => left + t / span * (right - left);
  chart.y = (t) => bottom - (Math.log10(Math.max(t, 10 ** domain[0])) - domain[0]) / (domain[1] - domain[0]) * (bottom - top);
  g.font = '11px ' + FONT;
  g.lineWidth = 1;
  g.strokeStyle = colours.line;
  g.fillStyle = colours.soft;
  g.textAlign = 'right';
  const every = Math.ceil((domain[1] - domain[0]) * 18 / (bottom - top));
  powerTicks(g, domain, (p, text) => {
    if ((p - domain[0]) % every) return;
    const y = chart.y(10 ** p);
    g.beginPath(); g.moveTo(left, y); g.lineTo(right, y); g.stroke();
    g.fillText(text, left - 5, y);
  });
  for (const [t, align] of [[0, 'left'], [span / 2, 'center'], [span, 'right']]) {
    g.textAlign = align;
    g.fillText(moment(t, span / 50), chart.x(t), bottom + 11);
  }
  if (store.messages.length > 4000) drawCloud(g, chart, times, phase);
  else drawDots(g, chart, times, phase);
  // The view of the ladder changes often: cache the parts that do not depend on it.
  chart.sheet = document.createElement('canvas');
  chart.sheet.width = canvas.width;
  chart.sheet.height = canvas.height;
  chart.sheet.getContext('2d').drawImage(canvas, 0, 0);
  return chart;
}

// drawTimelineOver marks the view of the ladder and the selection.
function drawTimelineOver(canvas, chart, phase) {
  const {g, w, h} = sized(canvas), {top, bottom} = chart, span = Math.max(doc.span, 1), times = M.phases[phase];
  g.drawImage(chart.sheet, 0, 0, w, h);
  const from = chart.x(Math.max(0, store.scale.time(ladder.u0))), to = chart.x(Math.min(span, store.scale.time(ladder.u1)));
  g.fillStyle = colours.shade;
  g.fillRect(from, top, Math.max(to - from, 2), bottom - top);
  for (const m of store.selected.messages) {
    if (!lanes.shown[m] || Number.isNaN(times[m])) continue;
    g.strokeStyle = colours.ink;
    g.lineWidth = 2;
    g.beginPath(); g.arc(chart.x(M.start[m]), chart.y(times[m]), 5, 0, 2 * Math.PI); g.stroke();
  }
}

function drawDots(g, chart, times, phase) {
  g.fillStyle = g.strokeStyle = colours.phase[phase];
  g.lineWidth = 1.4;
  for (const m of store.messages) {
    if (Number.isNaN(times[m])) continue;
    const x = chart.x(M.start[m]), y = chart.y(times[m]);
    g.beginPath();
    if (M.retransmissions[m]) { g.moveTo(x, y - 4); g.lineTo(x + 4, y + 3); g.lineTo(x - 4, y + 3); g.closePath(); g.stroke(); }
    else { g.globalAlpha = 0.6; g.arc(x, y, 2.3, 0, 2 * Math.PI); g.fill(); g.globalAlpha = 1; }
  }
}

function drawCloud(g, chart, times, phase) {
  const cols = Math.ceil((chart.right - chart.left) / 2), rows = Math.ceil((chart.bottom - chart.top) / 2);
  if (cols < 1 || rows < 1) return;
  const counts = new Int32Array(cols * rows);
  let most = 1;
  for (const m of store.messages) {
    if (Number.isNaN(times[m])) continue;
    const col = Math.min(cols - 1, Math.max(0, (chart.x(M.start[m]) - chart.left) >> 1));
    const row = Math.min(rows - 1, Math.max(0, (chart.y(times[m]) - chart.top) >> 1));
    most = Math.max(most, ++counts[row * cols + col]);
  }
  const image = new ImageData(cols, rows), [red, green, blue] = rgb(colours.phase[phase]);
  for (let i = 0; i < counts.length; i++) {
    if (!counts[i]) continue;
    image.data.set([red, green, blue, 90 + 165 * Math.log1p(counts[i]) / Math.log1p(most)], 4 * i);
  }
  const sheet = drawCloud.sheet ||= document.createElement('canvas');
  sheet.width = cols;
  sheet.height = rows;
  sheet.getContext('2d').putImageData(image, 0, 0);
  g.imageSmoothingEnabled = false;
  g.drawImage(sheet, chart.left, chart.top, cols * 2, rows * 2);
}
