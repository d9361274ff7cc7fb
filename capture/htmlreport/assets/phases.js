// The section with the time of each phase: a row for each, on a common scale.
const phaseRows = [];
let domain = [3, 6];

function buildPhases() {
  PHASES.forEach((p, phase) => {
    const numbers = element('dl');
    const histogram = element('canvas', {role: 'img', 'aria-label': `${p.name}: distribution of the times, on a logarithmic scale`});
    const timeline = element('canvas', {class: 'time', role: 'img', 'aria-label': `${p.name}: times over the recording`});
    byId('phase-rows').append(element('div', {class: 'phase'},
      element('div', {}, element('h3', {}, element('i', {class: 'p' + phase}), p.name), element('p', {class: 'who'}, p.who), numbers), histogram, timeline));
    const row = {phase, numbers, histogram, timeline};
    phaseRows.push(row);
    histogram.addEventListener('pointermove', (e) => hoverHistogram(row, e));
    timeline.addEventListener('pointermove', (e) => hoverTimeline(row, e));
    timeline.addEventListener('click', (e) => { const m = messageAt(row, e); if (m >= 0) selectAndJump(m); });
    for (const c of [histogram, timeline]) c.addEventListener('pointerleave', () => tooltip.hide());
  });
}

function fillPhases() {
  domain = timeDomain(M.phases);
  for (const row of phaseRows) {
    const s = row.summary = summaryOf(row.phase);
    const cells = [['messages', count(s.all)], ['p50', duration(s.p50)], ['p90', duration(s.p90)], ['p99', duration(s.p99)], ['max', duration(s.max)]];
    row.numbers.replaceChildren(...cells.map(([k, v]) => element('div', {}, element('dt', {}, k), element('dd', {}, v))));
  }
  const legend = store.messages.some((m) => M.retransmissions[m]) && store.messages.length <= 4000 ? ' Triangles are messages with retransmissions.' : '';
  byId('phases-sub').textContent = (doc.approximate ? 'Quantiles are approximate, within 3.2 %. ' : '') + (doc.listed ? '' : 'Drawn are the messages that are listed. ') + 'Shaded: what the ladder shows.' + legend;
  drawPhases();
}
function drawPhases() {
  for (const row of phaseRows) {
    row.bars = drawHistogram(row.histogram, row.phase, row.summary, domain);
    row.chart = drawTimeline(row.timeline, row.phase, domain);
  }
  drawTimelines();
}
function drawTimelines() {
  for (const row of phaseRows) if (row.chart) drawTimelineOver(row.timeline, row.chart, row.phase);
}
const redrawTimelines = later(drawTimelines);

function hoverHistogram(row, e) {
  const box = row.histogram.getBoundingClientRect(), {bins, left, wide} = row.bars;
  const i = Math.floor((e.clientX - box.left - left) / wide);
  if (!(bins[i] > 0)) return tooltip.hide();
  const edge = (k) => duration(10 ** (domain[0] + k / BINS));
  tooltip.show(e.clientX, e.clientY, `${edge(i)} to ${edge(i + 1)}`, [['Messages', count(bins[i])], ['Share', (100 * bins[i] / row.summary.n).toFixed(1) + ' %']]);
}

// messageAt returns the message nearest to the pointer, or -1.
function messageAt(row, e) {
  const box = row.timeline.getBoundingClientRect(), {chart} = row;
  const px = e.clientX - box.left, py = e.clientY - box.top, times = M.phases[row.phase];
  let best = -1, least = 8 * 8;
  for (const m of store.messages) {
    const dx = chart.x(M.start[m]) - px;
    if (dx > 8 || dx < -8 || Number.isNaN(times[m])) continue;
    const dy = chart.y(times[m]) - py, d = dx * dx + dy * dy;
    if (d < least) { least = d; best = m; }
  }
  return best;
}
function hoverTimeline(row, e) {
  const m = messageAt(row, e);
  if (m < 0) return tooltip.hide();
  tooltip.show(e.clientX, e.clientY, `Message ${M.id[m]}, rank ${M.src[m]} → rank ${M.dst[m]}`, messageFields(m), 'Click to see it in the ladder.');
}
