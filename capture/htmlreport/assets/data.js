// The report as typed arrays: M has the messages, S the steps, F the findings.
const FROM_SENDER = 1, RETRANSMITTED = 2, DUPLICATE = 4, LOST = 8, MISSING = 16;
const PHASES = [
  {name: 'Request → clear', short: 'req→clr', who: 'the sender waits for CLEAR_TO_SEND'},
  {name: 'Clear → data', short: 'clr→data', who: 'the receiver waits for DATA'},
  {name: 'Data → ACK', short: 'data→ack', who: 'the sender waits for ACK'},
  {name: 'Total', short: 'total', who: 'from SEND_REQUEST to ACK'},
];
const doc = JSON.parse(byId('data').textContent);
byId('data').textContent = '';

function running(differences, start = 0) {
  const out = new Float64Array(differences.length);
  let sum = start;
  for (let i = 0; i < out.length; i++) out[i] = sum += differences[i];
  return out;
}
function base32(text) {
  const out = new Uint8Array(text.length);
  for (let i = 0; i < out.length; i++) {
    const c = text.charCodeAt(i);
    out[i] = c < 58 ? c - 48 : c - 87;
  }
  return out;
}

const M = (() => {
  const m = doc.messages, list = (x) => x || [];
  const n = list(m.id).length;
  const first = new Uint32Array(n + 1);
  for (let i = 0; i < n; i++) first[i + 1] = first[i] + m.steps[i];
  return {
    n, first, id: running(list(m.id)), start: running(list(m.start)),
    src: Float64Array.from(list(m.src)), dst: Float64Array.from(list(m.dst)),
    words: Float64Array.from(list(m.words)), tag: Int32Array.from(list(m.tag)),
    call: list(m.call), calls: list(m.calls), verdict: list(m.verdict), verdicts: list(m.verdicts),
    phases: m.phases.map((p) => Float64Array.from(list(p), (x) => x < 0 ? NaN : x)),
    retransmissions: Int32Array.from(list(m.retransmissions)), complete: base32(m.complete),
  };
})();

const S = (() => {
  const s = doc.steps, list = (x) => x || [];
  const n = list(s.time).length;
  const time = new Float64Array(n), end = new Float64Array(n), message = new Uint32Array(n);
  for (let i = 0; i < M.n; i++) {
    let at = M.start[i];
    for (let k = M.first[i]; k < M.first[i + 1]; k++) {
      time[k] = at += s.time[k];
      end[k] = at + s.length[k];
      message[k] = i;
    }
  }
  // Messages are in the order of their first packets, so the steps are nearly sorted.
  const order = new Uint32Array(n);
  for (let i = 0; i < n; i++) order[i] = i;
  order.sort((a, b) => time[a] - time[b] || a - b);
  return {
    n, time, end, message, order, packet: running(list(s.packet)), packets: Int32Array.from(list(s.packets)),
    bytes: Float64Array.from(list(s.bytes)), type: base32(s.type), types: s.types, flags: base32(s.flags),
  };
})();
for (const key of ['time', 'length', 'packet', 'packets', 'bytes', 'type', 'flags']) doc.steps[key] = null;

const F = doc.findings;
F.n = F.kind.length;
// findingsOf maps messages to their findings.
const messageOf = new Map();
for (let i = 0; i < M.n; i++) messageOf.set(M.id[i], i);
const findingsOf = new Map();
for (let f = 0; f < F.n; f++) {
  for (const id of F.messages[f]) {
    const m = messageOf.get(id);
    if (m === undefined) continue;
    if (!findingsOf.has(m)) findingsOf.set(m, []);
    findingsOf.get(m).push(f);
  }
}
const waitOf = new Map();
for (const w of doc.waits) waitOf.set(messageOf.get(w.message), w);

// stepOfPacket returns the step that begins with a packet, or -1.
let packetSteps = null;
function stepOfPacket(number) {
  if (!packetSteps) {
    const steps = S.order.filter((s) => !(S.flags[s] & MISSING)).sort((a, b) => S.packet[a] - S.packet[b]);
    packetSteps = {steps, numbers: Float64Array.from(steps, (s) => S.packet[s])};
  }
  const i = firstAtLeast(packetSteps.numbers, number);
  return packetSteps.numbers[i] === number ? packetSteps.steps[i] : -1;
}

function stepFrom(s) {
  return S.flags[s] & FROM_SENDER ? M.src[S.message[s]] : M.dst[S.message[s]];
}
function stepTo(s) {
  return S.flags[s] & FROM_SENDER ? M.dst[S.message[s]] : M.src[S.message[s]];
}
function callOf(m) {
  return M.calls[M.call[m]];
}
function verdictOf(m) {
  return M.verdicts[M.verdict[m]];
}
// noteOf describes the flags of a step.
function noteOf(s) {
  const f = S.flags[s];
  if (f & MISSING) return 'not recorded: lost before, or not seen';
  const notes = [];
  if (f & RETRANSMITTED) notes.push('retransmitted');
  if (f & DUPLICATE) notes.push('delivered twice');
  if (f & LOST) notes.push(S.types[S.type[s]] === 'DATA' ? 'it, a part of it or its ACK was lost' : 'lost on the way');
  return notes.join(', ');
}
