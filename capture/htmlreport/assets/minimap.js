// The strip next to the ladder: the whole recording, with the part in view.
const minimap = {canvas: byId('minimap'), sheet: document.createElement('canvas')};

// buildMinimap draws the parts that do not depend on the view.
function buildMinimap() {
  const w = minimap.canvas.clientWidth, h = minimap.canvas.clientHeight;
  if (!w || !h) return;
  minimap.sheet.width = w;
  minimap.sheet.height = h;
  const g = minimap.sheet.getContext('2d');
  const [low, high] = wholeView(), k = h / (high - low);
  const counts = new Float64Array(h), wrong = new Uint8Array(h);
  let most = 1;
  for (let i = 0; i < lanes.steps.length; i++) {
    const row = Math.min(h - 1, Math.max(0, (lanes.begin[i] - low) * k | 0));
    most = Math.max(most, ++counts[row]);
    wrong[row] |= S.flags[lanes.steps[i]] & ~FROM_SENDER;
  }
  for (let row = 0; row < h; row++) {
    if (!counts[row]) continue;
    g.fillStyle = wrong[row] ? colours.warn : colours.heat;
    g.globalAlpha = 0.75;
    const wide = 2 + (w - 14) * Math.log1p(counts[row]) / Math.log1p(most);
    g.fillRect(1, row, wide, 1);
  }
  g.globalAlpha = 1;
  for (let f = 0; f < F.n; f++) {
    const y = (store.scale.place(F.time[f]) - low) * k;
    g.fillStyle = colours.level[F.kinds[F.kind[f]].level];
    g.fillRect(w - 8, y - 1, 7, 2.5);
  }
  drawMinimap();
}

const redrawMinimap = later(drawMinimap);
function drawMinimap() {
  const {g, w, h} = sized(minimap.canvas);
  if (minimap.sheet.height) g.drawImage(minimap.sheet, 0, 0, w, h);
  const [low, high] = wholeView(), k = h / (high - low);
  const y = (ladder.u0 - low) * k, tall = Math.max((ladder.u1 - ladder.u0) * k, 5);
  g.fillStyle = colours.shade;
  g.fillRect(0, y, w, tall);
  g.strokeStyle = colours.accent;
  g.lineWidth = 2;
  g.strokeRect(1, Math.min(y, h - tall) + 1, w - 2, tall - 2);
}

function listenToMinimap() {
  const go = (e) => {
    const box = minimap.canvas.getBoundingClientRect();
    const [low, high] = wholeView();
    const u = low + (e.clientY - box.top) / box.height * (high - low), half = (ladder.u1 - ladder.u0) / 2;
    setView(u - half, u + half);
  };
  minimap.canvas.addEventListener('pointerdown', (e) => { minimap.canvas.setPointerCapture(e.pointerId); go(e); });
  minimap.canvas.addEventListener('pointermove', (e) => e.buttons && go(e));
  minimap.canvas.addEventListener('wheel', (e) => { e.preventDefault(); zoomView(Math.exp(e.deltaY * 0.002)); }, {passive: false});
}
