// lanes has the parts of the ladder for the displayed messages: a lifeline for each rank, in the order of ranks, and
// the steps in order of time with their positions on the axis.
const lanes = {ranks: [], steps: null, from: null, to: null, begin: null, end: null, endMost: null};

function buildLanes() {
  const ranks = new Set(), shown = new Uint8Array(M.n);
  for (const m of store.messages) {
    shown[m] = 1;
    ranks.add(M.src[m]).add(M.dst[m]);
  }
  lanes.ranks = [...ranks].sort((a, b) => a - b);
  const laneOf = new Map(lanes.ranks.map((r, i) => [r, i]));
  const steps = store.messages.length === M.n ? S.order : S.order.filter((s) => shown[S.message[s]]);
  const n = steps.length;
  Object.assign(lanes, {laneOf, shown, steps, from: new Int32Array(n), to: new Int32Array(n)});
  for (let i = 0; i < n; i++) {
    lanes.from[i] = laneOf.get(stepFrom(steps[i]));
    lanes.to[i] = laneOf.get(stepTo(steps[i]));
  }
  placeLanes();
}

// placeLanes computes the positions of the steps on the axis, once for each scale.
function placeLanes() {
  const {steps} = lanes, n = steps.length, scale = store.scale;
  const begin = new Float64Array(n), end = new Float64Array(n), endMost = new Float64Array(n);
  let i = 0;
  for (let k = 0; k < n; k++) {
    const t = S.time[steps[k]];
    if (scale.compressed) {
      // Steps are sorted: walk along the axis instead of searching.
      while (axis[i] < t) i++;
      begin[k] = scale.places[i];
    } else begin[k] = scale.place(t);
    const e = S.end[steps[k]];
    end[k] = e > t ? scale.place(e) : begin[k];
    endMost[k] = k ? Math.max(endMost[k - 1], end[k]) : end[k];
  }
  Object.assign(lanes, {begin, end, endMost});
  placeMessages();
}

// placeMessages computes the positions of messages, from their first step to their last one, or to the end of the
// recording if a rank still waits.
function placeMessages() {
  const list = store.messages.filter((m) => M.first[m + 1] > M.first[m]);
  const begin = new Float64Array(list.length), end = new Float64Array(list.length), endMost = new Float64Array(list.length);
  const place = store.scale.place;
  for (let k = 0; k < list.length; k++) {
    const m = list[k];
    begin[k] = place(S.time[M.first[m]]);
    end[k] = waitOf.has(m) ? place(Math.max(doc.span, S.end[M.first[m + 1] - 1])) : place(S.end[M.first[m + 1] - 1]);
    endMost[k] = k ? Math.max(endMost[k - 1], end[k]) : end[k];
  }
  lanes.messages = {list, begin, end, endMost};
}

// stepsBetween returns a range of indices in lanes.steps that includes all steps between two positions on the axis.
// Some of them may be outside.
function stepsBetween(u0, u1) {
  return [firstAtLeast(lanes.endMost, u0), firstAtLeast(lanes.begin, u1)];
}
