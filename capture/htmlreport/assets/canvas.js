// Canvases with the resolution of the screen and the colors of the page.
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
const colours = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ['bg', 'card', 'ink', 'soft', 'line', 'faint', 'accent', 'select', 'good', 'bad', 'warn', 'note', 'heat', 'shade']) {
    colours[name] = style.getPropertyValue('--' + name).trim();
  }
  colours.type = [0, 1, 2, 3, 'x'].map((i) => style.getPropertyValue('--type-' + i).trim());
  colours.phase = [0, 1, 2, 3].map((i) => style.getPropertyValue('--phase-' + i).trim());
  colours.level = [colours.bad, colours.warn, colours.note];
}
function typeColour(type) {
  return colours.type[Math.min(type, 4)];
}
// rgb returns the components of a color like #1a2b3c.
function rgb(colour) {
  const n = parseInt(colour.slice(1, 7), 16);
  return [n >> 16, n >> 8 & 255, n & 255];
}
readColours();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  readColours();
  store.notify('theme');
});

// sized sets the resolution of a canvas to its size on the screen, and returns its context, cleared, with coordinates
// in CSS pixels.
function sized(canvas) {
  const w = canvas.clientWidth, h = canvas.clientHeight;
  const ratio = Math.min(Math.max(devicePixelRatio || 1, 1), 2);
  if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
    canvas.width = Math.round(w * ratio);
    canvas.height = Math.round(h * ratio);
  }
  const g = canvas.getContext('2d');
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, w, h);
  g.globalAlpha = 1;
  g.setLineDash([]);
  g.textBaseline = 'middle';
  return {g, w, h};
}
// later calls a function at most once per frame.
function later(f) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; f(); });
  };
}
// label writes text on a plate of the background color.
function label(g, text, x, y, colour, align = 'center') {
  g.textAlign = align;
  const w = g.measureText(text).width;
  const left = align === 'center' ? x - w / 2 : align === 'right' ? x - w : x;
  g.save();
  g.fillStyle = colours.card;
  g.globalAlpha *= 0.85;
  g.fillRect(left - 3, y - 7, w + 6, 14);
  g.restore();
  g.fillStyle = colour;
  g.fillText(text, x, y);
}
// levelMark draws the mark of a finding: a square, a triangle or a circle.
function levelMark(g, level, x, y, r) {
  g.fillStyle = colours.level[level];
  g.beginPath();
  if (level === 0) g.rect(x - r, y - r, 2 * r, 2 * r);
  else if (level === 1) { g.moveTo(x, y - r); g.lineTo(x + r, y + r); g.lineTo(x - r, y + r); g.closePath(); }
  else g.arc(x, y, r, 0, 2 * Math.PI);
  g.fill();
}
