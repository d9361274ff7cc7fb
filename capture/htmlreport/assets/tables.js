// The tables of pairs and of messages.
let pairTable, messageTable;

function buildPairTable() {
  const P = doc.pairs, all = (i) => P[i].src < 0;
  const columns = [
    {name: 'Ranks', title: 'ranks', width: 8, left: true, stick: true, text: (i) => all(i) ? 'all' : `${P[i].src} → ${P[i].dst}`, value: (i) => all(i) ? -1 : P[i].src * 2 ** 20 + Math.min(P[i].dst, 2 ** 20),
      open: (i) => setPair(all(i) ? '' : P[i].src + '>' + P[i].dst)},
    {name: 'Messages', width: 7.5, high: true, text: (i) => count(P[i].messages), value: (i) => P[i].messages},
    {name: 'Complete', width: 7.5, high: true, text: (i) => count(P[i].complete), value: (i) => P[i].complete, mark: (i) => P[i].complete < P[i].messages ? 'bad' : ''},
    {name: 'Retransmissions', width: 10, high: true, text: (i) => count(P[i].retransmissions), value: (i) => P[i].retransmissions, mark: (i) => P[i].retransmissions ? 'warn' : ''},
    {name: 'Words', width: 8.5, high: true, text: (i) => count(P[i].words), value: (i) => P[i].words},
  ];
  PHASES.forEach((p, phase) => ['p50', 'p90', 'p99', 'max'].forEach((q, k) => columns.push({
    name: q, title: `${q} of ${p.name}`, width: 6, high: true, edge: k === 0,
    text: (i) => P[i].phases[phase][0] ? duration(P[i].phases[phase][k + 1]) : '–', value: (i) => P[i].phases[phase][0] ? P[i].phases[phase][k + 1] : NaN,
  })));
  pairTable = makeTable(byId('pair-table'), {
    label: 'Pairs of ranks', columns, height: 340, groups: [['', 5], ...PHASES.map((p) => [p.name, 4])],
    isOn: (i) => store.pair !== '' && store.pair === P[i].src + '>' + P[i].dst,
  });
  pairTable.setRows(Uint32Array.from(P, (_, i) => i));
}

function buildMessageTable() {
  const findings = (m) => (findingsOf.get(m) || []).length;
  const columns = [
    {name: 'Message', width: 7, stick: true, text: (m) => count(M.id[m]), value: (m) => M.id[m], open: selectAndJump},
    {name: 'Start', width: 9.5, text: (m) => moment(M.start[m], 1e3), value: (m) => M.start[m]},
    {name: 'Ranks', width: 6.5, left: true, text: (m) => `${M.src[m]} → ${M.dst[m]}`, value: (m) => M.src[m] * 2 ** 20 + Math.min(M.dst[m], 2 ** 20)},
    {name: 'Call', width: 7.5, left: true, text: callOf, value: callOf},
    {name: 'Words', width: 6.5, high: true, text: (m) => count(M.words[m]), value: (m) => M.words[m]},
    ...(M.tag.some((t) => t) ? [{name: 'Tag', width: 4.5, text: (m) => String(M.tag[m] || '–'), value: (m) => M.tag[m]}] : []),
    ...PHASES.map((p, i) => ({name: p.short, title: p.name, width: 6, high: true, text: (m) => duration(M.phases[i][m]), value: (m) => M.phases[i][m]})),
    {name: 'Retransmissions', width: 10, high: true, text: (m) => String(M.retransmissions[m]), value: (m) => M.retransmissions[m], mark: (m) => M.retransmissions[m] ? 'warn' : ''},
    {name: 'Findings', width: 6, high: true, text: (m) => String(findings(m)), value: findings},
    {name: 'Verdict', width: 15, left: true, text: verdictOf, value: verdictOf, mark: (m) => M.complete[m] ? '' : 'bad'},
  ];
  messageTable = makeTable(byId('message-table'), {
    label: 'Messages', columns, height: 430, isOn: (m) => store.selected.messages.has(m), pick: selectAndJump,
  });
  let timer = 0;
  byId('search').addEventListener('input', () => { clearTimeout(timer); timer = setTimeout(searchMessages, 120); });
  byId('which').addEventListener('change', searchMessages);
}

// searchText returns the text by which a message is found. "0→1" may be typed as 0>1 or 0->1.
function searchText(m) {
  return `${M.id[m]} ${M.src[m]}→${M.dst[m]} ${callOf(m)} ${M.words[m]} ${verdictOf(m)} ${M.tag[m] ? 'tag' + M.tag[m] : ''}`.toLowerCase();
}
function searchMessages() {
  const terms = byId('search').value.toLowerCase().replace(/\s*(->|→|>)\s*/g, '→').split(/\s+/).filter(Boolean);
  const keep = {all: () => true, findings: (m) => findingsOf.has(m), incomplete: (m) => !M.complete[m], retransmitted: (m) => M.retransmissions[m] > 0}[byId('which').value];
  const rows = store.messages.filter((m) => {
    if (!keep(m)) return false;
    if (terms.length === 0) return true;
    const text = searchText(m);
    return terms.every((t) => text.includes(t));
  });
  messageTable.setRows(rows);
  byId('found').textContent = rows.length === store.messages.length ? plural(rows.length, 'message') : `${count(rows.length)} of ${plural(store.messages.length, 'message')}`;
}
