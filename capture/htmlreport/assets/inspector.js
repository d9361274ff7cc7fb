// The panel about the selected message: its times, its packets, its findings.
const MOST_STEPS = 60;

function fieldList(fields) {
  const list = element('dl', {class: 'fields'});
  for (const [name, value] of fields) {
    if (value !== '' && value != null) list.append(element('dt', {}, name), element('dd', {}, String(value)));
  }
  return list;
}

function showInspector() {
  const sel = store.selected, box = byId('inspector');
  const m = sel.messages.values().next().value;
  box.hidden = m === undefined;
  if (m === undefined) return;
  const others = [...sel.messages].slice(1, 13);
  byId('inspector-title').textContent = `Message ${M.id[m]}: rank ${M.src[m]} → rank ${M.dst[m]}`;
  const left = element('div', {}, element('h3', {}, 'Message'), fieldList(messageFields(m).concat([
    ['Tag', M.tag[m] || ''], ['Complete', M.complete[m] ? 'yes' : 'no'],
    ['At the end', waitOf.has(m) ? `rank ${waitOf.get(m).who} waits for ${waitOf.get(m).what} from rank ${waitOf.get(m).on}` : ''],
  ])));
  if (others.length) {
    left.append(element('p', {class: 'sub'}, 'Selected as well: ', ...others.flatMap((o, i) => [i ? ', ' : '', element('button', {type: 'button', class: 'linkish', onclick: () => selectAndJump(o)}, `message ${M.id[o]}`)]),
      sel.messages.size > 13 ? ` and ${sel.messages.size - 13} more` : ''));
  }
  box.querySelector('#inspector-body').replaceChildren(left, inspectorSteps(m), inspectorFindings(m));
}

function inspectorSteps(m) {
  const body = element('tbody'), sel = store.selected;
  const end = Math.min(M.first[m + 1], M.first[m] + MOST_STEPS);
  for (let s = M.first[m]; s < end; s++) {
    const data = S.types[S.type[s]] === 'DATA' && !(S.flags[s] & MISSING);
    const on = sel.packets.has(S.packet[s]) && !(S.flags[s] & MISSING) || s === sel.step;
    body.append(element('tr', {class: on && 'on'},
      element('td', {}, S.flags[s] & MISSING ? '–' : S.packets[s] > 1 ? `${S.packet[s]} (+${S.packets[s] - 1})` : String(S.packet[s])),
      element('td', {}, s > M.first[m] ? '+' + duration(S.time[s] - S.time[M.first[m]]) : exact(S.time[s])),
      element('td', {}, `${stepFrom(s)} → ${stepTo(s)}`),
      element('td', {}, S.types[S.type[s]] + (data ? `, ${plural(S.bytes[s], 'byte')}` : '')), element('td', {}, noteOf(s))));
  }
  const head = element('tr', {}, ...['Packet', 'Time', 'Ranks', 'Type', 'Note'].map((t) => element('th', {scope: 'col'}, t)));
  const left = M.first[m + 1] - end;
  return element('div', {}, element('h3', {}, 'Packets'),
    element('div', {class: 'steps', tabindex: 0, role: 'region', 'aria-label': 'Packets of the message'}, element('table', {}, element('thead', {}, head), body)),
    left > 0 ? element('p', {class: 'sub'}, `and ${plural(left, 'more packet')}`) : null);
}

function inspectorFindings(m) {
  const list = findingsOf.get(m) || [];
  const box = element('div', {}, element('h3', {}, list.length ? plural(list.length, 'finding') : 'No findings'));
  for (const f of list.slice(0, 20)) {
    box.append(element('p', {}, element('button', {type: 'button', class: 'linkish', onclick: () => selectFinding(f)}, words(F.kinds[F.kind[f]].name)), ' – ' + F.text[f]));
  }
  if (list.length > 20) box.append(element('p', {class: 'sub'}, `and ${plural(list.length - 20, 'more finding')}`));
  return box;
}

function selectAndJump(m) {
  selectMessage(m);
  jump();
}
