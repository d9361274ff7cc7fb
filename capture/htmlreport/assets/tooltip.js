// The tooltip of all diagrams.
const tooltip = {
  box: byId('tooltip'),
  // show places the tooltip next to a position on the screen. fields are pairs of name and value; pairs without a value
  // are omitted.
  show(x, y, title, fields, hint) {
    const list = element('dl', {class: 'fields'});
    for (const [name, value] of fields) {
      if (value === '' || value == null) continue;
      list.append(element('dt', {}, name), element('dd', {}, String(value)));
    }
    this.box.replaceChildren(element('strong', {}, title), list, hint ? element('p', {}, hint) : '');
    this.box.hidden = false;
    const r = this.box.getBoundingClientRect();
    const room = document.documentElement.clientWidth;
    let left = x + 16, top = y + 16;
    if (left + r.width > room - 8) left = x - 16 - r.width;
    if (top + r.height > innerHeight - 8) top = y - 16 - r.height;
    this.box.style.left = Math.max(8, Math.min(left, room - r.width - 8)) + 'px';
    this.box.style.top = Math.max(8, top) + 'px';
  },
  hide() { this.box.hidden = true; },
};

function stepFields(s) {
  const m = S.message[s], first = M.first[m];
  const missing = S.flags[s] & MISSING;
  return [
    ['Message', `${M.id[m]}: ${callOf(m)}, ${plural(M.words[m], 'word')}${M.tag[m] ? ', tag ' + M.tag[m] : ''}`],
    ['Packet', missing ? '' : S.packets[s] > 1 ? `${S.packet[s]} and ${plural(S.packets[s] - 1, 'more datagram')}` : S.packet[s]],
    ['Time', (missing ? 'about ' : '') + exact(S.time[s])],
    ['After the step before', s > first ? duration(S.time[s] - S.end[s - 1]) : ''],
    ['Lasted', S.end[s] > S.time[s] ? duration(S.end[s] - S.time[s]) : ''],
    ['Payload', S.types[S.type[s]] === 'DATA' && !missing ? plural(S.bytes[s], 'byte') : ''],
    ['Note', noteOf(s)],
    ...PHASES.map((p, i) => [p.name, Number.isNaN(M.phases[i][m]) ? '' : duration(M.phases[i][m])]),
    ['Retransmissions', M.retransmissions[m] || ''],
    ['Verdict', verdictOf(m)],
    ['Findings', findingsOf.has(m) ? findingsOf.get(m).length : ''],
  ];
}
function stepTitle(s) {
  return `${S.types[S.type[s]]}, rank ${stepFrom(s)} → rank ${stepTo(s)}`;
}
function messageFields(m) {
  return [
    ['Call', `${callOf(m)}, ${plural(M.words[m], 'word')}`], ['Start', exact(M.start[m])],
    ...PHASES.map((p, i) => [p.name, Number.isNaN(M.phases[i][m]) ? '' : duration(M.phases[i][m])]),
    ['Retransmissions', M.retransmissions[m] || ''], ['Verdict', verdictOf(m)],
  ];
}
