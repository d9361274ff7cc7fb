// Assembles the page from its parts.
function buildPairs() {
  const counts = new Map();
  for (let m = 0; m < M.n; m++) counts.set(pairKey(m), (counts.get(pairKey(m)) || 0) + 1);
  const keys = [...counts.keys()].sort((a, b) => {
    const [p, q] = a.split('>'), [r, s] = b.split('>');
    return p - r || q - s;
  });
  const pick = byId('pair');
  pick.append(element('option', {value: ''}, `all (${count(M.n)})`), ...keys.map((k) => element('option', {value: k}, `${k.replace('>', ' → ')} (${count(counts.get(k))})`)));
  pick.addEventListener('change', () => setPair(pick.value));
}
function tellShown() {
  byId('shown').textContent = store.pair === '' ? '' : `${count(store.messages.length)} of ${plural(M.n, 'message')}`;
}

filterMessages();
buildPairs();
buildLegend();
buildLanes();
buildKinds();
buildPhases();
buildPairTable();
buildMessageTable();
listenToLadder();
listenToMinimap();

store.on('shown', () => { tellShown(); buildLanes(); fitView(); buildMinimap(); filterFindings(); fillPhases(); searchMessages(); pairTable.redraw(); });
store.on('scale', () => {
  placeLanes();
  if (store.selected.messages.size) jump(); else fitView();
  buildMinimap();
});
store.on('selected', () => { showFinding(); showInspector(); redrawLadder(); redrawTimelines(); messageTable.redraw(); });
store.on('selected', () => {
  const {messages, finding, step} = store.selected;
  if (finding >= 0) jump();
  if (messages.size && step >= 0) messageTable.showRow(messages.values().next().value);
});
store.on('theme', () => { redrawLadder(); buildMinimap(); drawPhases(); });
store.on('view', () => { redrawMinimap(); redrawTimelines(); });
byId('inspector-close').addEventListener('click', selectNothing);

// openAddress selects the target after # in the address, and reports whether it exists.
function openAddress() {
  const [, what, digits] = location.hash.match(/^#(finding|message|packet)-(\d+)$/) || [];
  const n = Number(digits);
  if (what === 'finding' && n >= 1 && n <= F.n) {
    selectFinding(n - 1);
  } else if (what === 'message' && messageOf.has(n)) {
    selectAndJump(messageOf.get(n));
  } else if (what === 'packet' && stepOfPacket(n) >= 0) {
    const s = stepOfPacket(n);
    select({messages: new Set([S.message[s]]), packets: new Set([n]), step: s});
    jump();
  } else {
    return false;
  }
  const row = byId('inspector').querySelector('.steps .on');
  if (what !== 'finding') (row || byId('inspector')).scrollIntoView({block: 'nearest'});
  return true;
}
window.addEventListener('hashchange', openAddress);

// openFirst starts with the most serious finding, so that Tab and Enter continue from there.
function openFirst() {
  if (F.first < 0) return;
  selectFinding(F.first);
  const button = byId('finding-list').querySelector(`[data-finding="${F.first}"]`);
  if (button) button.focus();
}

let width = 0, height = 0;
new ResizeObserver(later(() => {
  const box = byId('ladderbox');
  if (box.clientWidth === width && box.clientHeight === height) return;
  [width, height] = [box.clientWidth, box.clientHeight];
  drawLadder();
  buildMinimap();
  drawPhases();
})).observe(byId('ladderbox'));

fitView();
fillPhases();
searchMessages();
drawLadder();
buildMinimap();
if (!openAddress()) openFirst();
// For the console: the contents and the cost of the ladder.
window.zrlmpiReport = {
  ready: performance.now(), select: selectFinding, selectMessage: selectAndJump, zoom: zoomView, fit: fitView,
  get ladder() { return {from: store.scale.time(ladder.u0), to: store.scale.time(ladder.u1), mode: ladder.mode, frames: ladder.frames, lastFrame: ladder.lastFrame, worstFrame: ladder.worstFrame}; },
  // place returns the position of a packet in the diagram, in pixels.
  place(packet) {
    const s = stepOfPacket(packet), view = geometry();
    return s < 0 ? null : {x: (view.x(lanes.laneOf.get(stepFrom(s))) + view.x(lanes.laneOf.get(stepTo(s)))) / 2, y: view.y(store.scale.place(S.time[s]))};
  },
};
