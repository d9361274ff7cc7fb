// The displayed and the selected messages; every part of the page listens to changes.
const store = {
  pair: '',
  scale: makeScale(true),
  messages: null, // Uint32Array of the displayed messages, by start
  // selected.finding is -1 or a finding; messages and packets are highlighted.
  selected: {finding: -1, messages: new Set(), packets: new Set(), step: -1},
  listeners: {shown: [], scale: [], selected: [], theme: [], view: []},
  on(what, f) { for (const w of what.split(' ')) this.listeners[w].push(f); },
  notify(what) { for (const f of this.listeners[what]) f(); },
};

function pairKey(m) {
  return M.src[m] + '>' + M.dst[m];
}
function filterMessages() {
  const out = [];
  const [src, dst] = store.pair.split('>').map(Number);
  for (let m = 0; m < M.n; m++) {
    if (store.pair === '' || M.src[m] === src && M.dst[m] === dst) out.push(m);
  }
  let sorted = true;
  for (let i = 1; i < out.length && sorted; i++) sorted = M.start[out[i]] >= M.start[out[i - 1]];
  if (!sorted) out.sort((a, b) => M.start[a] - M.start[b] || a - b);
  store.messages = Uint32Array.from(out);
}
function setPair(pair) {
  if (pair === store.pair) return;
  store.pair = pair;
  byId('pair').value = pair;
  filterMessages();
  store.notify('shown');
}
function setCompressed(on) {
  store.scale = makeScale(on);
  store.notify('scale');
}

function select(selected) {
  store.selected = {finding: -1, messages: new Set(), packets: new Set(), step: -1, ...selected};
  store.notify('selected');
}
function selectNothing() {
  select({});
}
// reveal ensures that the messages are displayed.
function reveal(messages) {
  if (store.pair !== '' && messages.some((m) => pairKey(m) !== store.pair)) setPair('');
}
function selectMessage(m, step = -1) {
  reveal([m]);
  select({messages: new Set([m]), step});
}
function selectFinding(f) {
  const messages = F.messages[f].map((id) => messageOf.get(id)).filter((m) => m !== undefined);
  for (const p of F.packets[f]) {
    const s = stepOfPacket(p);
    if (s >= 0 && !messages.includes(S.message[s])) messages.push(S.message[s]);
  }
  reveal(messages);
  select({finding: f, messages: new Set(messages), packets: new Set(F.packets[f])});
}
