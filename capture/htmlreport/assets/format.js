// Formatting of numbers and times. Times are in nanoseconds.
function count(n) {
  return String(n).replace(/\B(?=(\d{3})+$)/g, '\u202f');
}
function plural(n, word) {
  return n === 1 ? '1 ' + word : count(n) + ' ' + word + 's';
}
function digits3(x) {
  return x >= 99.95 ? x.toFixed(0) : x >= 9.995 ? x.toFixed(1) : x.toFixed(2);
}
function duration(ns) {
  if (Number.isNaN(ns)) return '–';
  if (ns < 0) return '−' + duration(-ns);
  if (ns < 1e3) return ns.toFixed(0) + ' ns';
  if (ns < 999.5e3) return digits3(ns / 1e3) + ' µs';
  if (ns < 999.5e6) return digits3(ns / 1e6) + ' ms';
  if (ns < 600e9) return digits3(ns / 1e9) + ' s';
  return count(Math.round(ns / 60e9)) + ' min';
}
// moment formats a time since the start of the recording with enough digits to distinguish times that differ by step.
function moment(ns, step) {
  const decimals = Math.min(9, Math.max(0, Math.ceil(9 - Math.log10(Math.max(step || 1, 1)))));
  return (ns / 1e9).toFixed(decimals) + ' s';
}
function exact(ns) {
  return (ns / 1e9).toFixed(ns % 1000 ? 9 : 6) + ' s';
}
function words(text) {
  const s = text.replaceAll('_', ' ');
  return s.charAt(0).toUpperCase() + s.slice(1);
}
// element creates an element. Text is set as text content, never parsed.
function element(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes || {})) {
    if (k.startsWith('on')) e.addEventListener(k.slice(2), v);
    else if (v === true) e.setAttribute(k, '');
    else if (v !== false && v != null) e.setAttribute(k, v);
  }
  e.append(...children.filter((c) => c != null));
  return e;
}
function byId(id) {
  return document.getElementById(id);
}
// firstAtLeast returns the first index in an ascending list whose value is at least x.
function firstAtLeast(list, x, n = list.length) {
  let lo = 0, hi = n;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (list[mid] < x) lo = mid + 1; else hi = mid;
  }
  return lo;
}
