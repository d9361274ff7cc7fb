// A scale converts times to positions on the diagram's axis and back.
//
// The compressed scale shows a gap g between two packets with the length g0·ln(1 + g/g0), where g0 is the lower
// quartile of the gaps: short gaps remain to scale, and a timeout that is 50,000 times as long takes the length of
// eleven.
const axis = (() => {
  const all = new Float64Array(2 * S.n + 1 + F.n);
  all.set(S.time);
  all.set(S.end, S.n);
  all.set(F.time, 2 * S.n + 1);
  all[2 * S.n] = doc.span;
  all.sort();
  let n = 0;
  for (let i = 0; i < all.length; i++) if (i === 0 || all[i] !== all[i - 1]) all[n++] = all[i];
  return all.slice(0, n);
})();

function makeScale(compressed) {
  const n = axis.length, begin = Math.min(axis[0], 0);
  if (!compressed) {
    const length = Math.max(axis[n - 1] - begin, 1);
    return {compressed, length, unit: Math.max(length / 1e9, 1), place: (t) => t - begin, time: (u) => u + begin, gaps: []};
  }
  const lengths = new Float64Array(n - 1);
  for (let i = 0; i < n - 1; i++) lengths[i] = axis[i + 1] - axis[i];
  const unit = n > 1 ? lengths.slice().sort()[(n - 2) >> 2] : 1e3;
  const places = new Float64Array(n);
  const gaps = [];
  for (let i = 0; i < n - 1; i++) {
    places[i + 1] = places[i] + unit * Math.log1p(lengths[i] / unit);
    if (lengths[i] > 40 * unit) gaps.push(i);
  }
  const at = (from, to, x) => {
    if (x <= from[0]) return to[0] + (x - from[0]);
    if (x >= from[n - 1]) return to[n - 1] + (x - from[n - 1]);
    const i = firstAtLeast(from, x);
    if (from[i] === x) return to[i];
    return to[i - 1] + (x - from[i - 1]) / (from[i] - from[i - 1]) * (to[i] - to[i - 1]);
  };
  return {
    compressed, unit, places, gaps, length: Math.max(places[n - 1], unit),
    place: (t) => at(axis, places, t), time: (u) => at(places, axis, u),
  };
}

// tickTimes returns times of ticks between two positions on the axis, at least room pixels apart.
function tickTimes(scale, u0, u1, pixels, room) {
  const k = pixels / (u1 - u0), out = [];
  if (!scale.compressed) {
    const rough = (u1 - u0) / Math.max(pixels / room, 1);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough) || power;
    for (let i = Math.ceil(scale.time(u0) / step); out.length < 200; i++) {
      if (scale.place(i * step) > u1) break;
      out.push(i * step);
    }
    return {times: out, step};
  }
  // A compressed axis has no even steps: its ticks are the times of packets.
  let last = -Infinity, step = Infinity;
  for (let y = 0; y < pixels; y += room / 4) {
    const i = firstAtLeast(scale.places, u0 + y / k);
    if (i >= axis.length) break;
    const at = (scale.places[i] - u0) * k;
    if (at - last < room || at > pixels) continue;
    if (out.length) step = Math.min(step, axis[i] - out[out.length - 1]);
    out.push(axis[i]);
    last = at;
  }
  return {times: out, step: step === Infinity ? 1e3 : step};
}
