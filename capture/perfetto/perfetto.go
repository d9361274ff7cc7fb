package perfetto

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Write writes the messages, calls, findings and queue lengths of a report. Times are in nanoseconds since the first
// packet of the recording, or since the first call if that was earlier. Slices of messages and calls still open at the
// end of the recording extend to the end.
func Write(to io.Writer, report *capture.Report) error {
	t := newTrace(to)
	calls := t.allCalls(report)
	since := report.Start
	if len(calls) > 0 && (since.IsZero() || calls[0].postTime().Before(since)) {
		since = calls[0].postTime()
	}
	start := int64(0)
	if !report.Start.IsZero() {
		start = int64(report.Start.Sub(since))
	}
	end := start + nanoseconds(report.Summary.Seconds)
	all := make([]tracedMessage, 0, len(report.Messages)+len(report.Extended))
	for i := range report.Messages {
		all = append(all, traceHandshake(&report.Messages[i], since, start, end))
	}
	for i := range report.Extended {
		all = append(all, traceExtended(&report.Extended[i], int64(i), since))
	}
	slices.SortStableFunc(all, func(a, b tracedMessage) int { return cmp.Compare(a.from, b.from) })
	for i := range all {
		t.addMessage(&all[i])
		t.countInFlight(&all[i])
	}
	for i := range calls {
		t.addCall(&calls[i], since)
	}
	for i := range report.Findings {
		t.addFinding(&report.Findings[i], start+nanoseconds(max(report.Findings[i].Time, 0)))
	}
	t.addCounters()
	for i := range report.Depths {
		t.addQueueDepths(&report.Depths[i], max(int64(report.Depths[i].Time.Sub(since)), 0))
	}
	slices.SortStableFunc(t.events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	t.flushEvents()
	return t.w.err
}

func newTrace(to io.Writer) trace {
	return trace{w: writer{to: to}, lanes: map[side][]lane{}, ranks: map[int]*rank{}, calls: openCalls{}}
}

// flushEvents writes and clears the events.
func (t *trace) flushEvents() {
	for i := range t.events {
		t.w.writeEvent(&t.events[i])
	}
	t.events = t.events[:0]
}

func nanoseconds(seconds float64) int64 { return int64(seconds*1e9 + 0.5) }

// trace is a trace under construction.
type trace struct {
	w        writer
	events   []event
	tracks   uint64 // number of tracks
	ranks    map[int]*rank
	lanes    map[side][]lane
	calls    openCalls
	findings uint64 // track of findings, or 0
}

// rank is the process in the trace that represents a rank.
type rank struct {
	track uint64
	// changes lists how the number of the rank's messages in flight changes over time.
	changes []change
	// queues holds the tracks of the rank's queue lengths, or zeros until the first queue lengths are added.
	queues [len(queueNames)]uint64
}

// queueNames are the names of the counters.
var queueNames = [...]string{"posted receives", "unexpected messages", "sends in flight"}

// change is a change in the number of messages and words in flight, caused by a message that begins or ends.
type change struct {
	at              int64
	messages, words int64
}

// side identifies a group of tracks: the sending or receiving side of messages from one rank to another or, if peer is
// callsPeer, the calls of a rank.
type side struct {
	rank, peer int
	sends      bool
}

// callsPeer is the peer of the side that holds a rank's calls, which belong to no pair of ranks.
const callsPeer = -1

// lane is one of a side's tracks. The slices on a lane do not overlap.
type lane struct {
	track uint64
	until int64 // end of its last slice
}

// span is a named interval of time.
type span struct {
	name     string
	from, to int64
}

func (t *trace) newTrack() uint64 {
	t.tracks++
	return t.tracks
}

// getRank returns the process for a rank. If the rank is new, it first writes the description of this process.
func (t *trace) getRank(number int) *rank {
	r := t.ranks[number]
	if r == nil {
		r = &rank{track: t.newTrack()}
		t.ranks[number] = r
		t.w.writeProcess(r.track, number+1, fmt.Sprintf("rank %d", number)) // process 0 is the system's idle process
	}
	return r
}

// freeLane returns a track of the side s that is free during a period, and reserves it for this period.
func (t *trace) freeLane(s side, from, to int64) uint64 {
	lanes := t.lanes[s]
	for i := range lanes {
		if lanes[i].until <= from {
			lanes[i].until = to
			return lanes[i].track
		}
	}
	name := fmt.Sprintf("from rank %d", s.peer)
	switch {
	case s.peer == callsPeer:
		name = "calls"
	case s.sends:
		name = fmt.Sprintf("to rank %d", s.peer)
	}
	if n := len(lanes); n > 0 {
		name += fmt.Sprintf(" (%d)", n+1)
	}
	l := lane{t.newTrack(), to}
	t.w.writeTrack(l.track, t.getRank(s.rank).track, name)
	t.lanes[s] = append(lanes, l)
	return l.track
}

// tracedMessage is a message from one rank to another in the form needed for the trace.
type tracedMessage struct {
	span
	src, dst int
	words    int64
	// id is the number of the arrow that connects the two slices of the message.
	id    uint64
	notes []annotation
	// phases lists the phases of known duration. recvBegin is the time at which the receiver's slice begins.
	phases    []span
	recvBegin int64
}

// traceHandshake returns the trace of a message in a profile with handshake. The recording lasts from start to end, and
// times are relative to since. A message without an ACK lasts until its pair continues with another message.
func traceHandshake(message *capture.Message, since time.Time, start, end int64) tracedMessage {
	msg := tracedMessage{
		src: message.Src, dst: message.Dst, words: int64(message.Words), id: uint64(message.ID),
		notes: []annotation{
			{name: "message", number: message.ID}, {name: "words", number: int64(message.Words)},
			{name: "tag", number: int64(message.Tag)},
			{name: "retransmissions", number: int64(message.Retransmissions)}, {name: "verdict", text: message.Verdict},
		},
	}
	msg.name, msg.from = fmt.Sprintf("%s %d", message.Call, message.Words), start+nanoseconds(message.Start)
	at := msg.from
	for _, phase := range []struct {
		name string
		took *float64
	}{
		{requestPhase, message.Phases.RequestToClear}, {dataPhase, message.Phases.ClearToData}, {"DATA to ACK",
			message.Phases.DataToAck},
	} {
		if phase.took != nil {
			msg.phases = append(msg.phases, span{phase.name, at, at + nanoseconds(*phase.took)})
			at += nanoseconds(*phase.took)
		}
	}
	switch {
	case message.Phases.Total != nil:
		msg.to = msg.from + nanoseconds(*message.Phases.Total)
	case !message.EndTime.IsZero():
		msg.to = int64(message.EndTime.Sub(since))
	case !message.Complete:
		msg.to = end
	}
	msg.to = max(msg.to, at)
	msg.recvBegin = msg.from
	if c := message.Phases.RequestToClear; c != nil { // the receiver's side begins here
		msg.recvBegin = min(msg.from+nanoseconds(*c), msg.to)
	}
	return msg
}

// Phases common to both kinds of messages.
const (
	requestPhase = "SEND_REQUEST to CLEAR_TO_SEND"
	dataPhase    = "CLEAR_TO_SEND to DATA"
)

// extendedArrows is the number of the first arrow for messages of the extended profile.
const extendedArrows = 1 << 62

// traceExtended returns the trace of a message in the extended profile. Times are relative to the parameter since.
func traceExtended(message *capture.ExtendedMessage, number int64, since time.Time) tracedMessage {
	msg := tracedMessage{
		src: message.Src, dst: message.Dst, words: (message.Bytes + protocol.WordLen - 1) / protocol.WordLen,
		id: extendedArrows + uint64(number),
		notes: []annotation{
			{name: "message", number: int64(message.Number)}, {name: "bytes", number: message.Bytes},
			{name: "tag", number: int64(message.Tag)},
			{name: "communicator", number: int64(message.Comm)}, {name: "outcome", text: string(message.Outcome)},
		},
	}
	msg.name, msg.from, msg.to = fmt.Sprintf("%d bytes",
		message.Bytes), int64(message.BeginTime.Sub(since)), int64(message.EndTime.Sub(since))
	msg.recvBegin = msg.from
	if !message.MatchTime.IsZero() {
		msg.recvBegin = int64(message.MatchTime.Sub(since))
		msg.phases = []span{{requestPhase, msg.from, msg.recvBegin}, {dataPhase, msg.recvBegin, msg.to}}
	}
	return msg
}

// addMessage adds the slices of a message.
func (t *trace) addMessage(p *tracedMessage) {
	t.addSlice(t.freeLane(side{p.src, p.dst, true}, p.from, p.to), p.span, p.id, p.notes, p.phases)
	t.addSlice(t.freeLane(side{p.dst, p.src, false}, p.recvBegin, p.to), span{p.name, p.recvBegin, p.to}, p.id, p.notes,
		nil)
}

// countInFlight adds a message to its two ranks' counters of messages in flight.
func (t *trace) countInFlight(p *tracedMessage) {
	for _, number := range []int{p.src, p.dst} {
		r := t.getRank(number)
		r.changes = append(r.changes, change{p.from, 1, p.words}, change{p.to, -1, -p.words})
	}
}

// addSlice adds a slice to a track, and then the slices nested inside it.
func (t *trace) addSlice(track uint64, s span, flow uint64, notes []annotation, inside []span) {
	t.events = append(t.events,
		event{at: s.from, kind: typeBegin, track: track, name: s.name, flow: flow, notes: notes})
	for _, in := range inside {
		t.events = append(t.events, event{at: in.from, kind: typeBegin, track: track, name: in.name},
			event{at: in.to, kind: typeEnd, track: track})
	}
	t.events = append(t.events, event{at: s.to, kind: typeEnd, track: track})
}

// addFinding adds a finding to the track of findings.
func (t *trace) addFinding(finding *capture.Finding, at int64) {
	if t.findings == 0 {
		t.findings = t.newTrack()
		t.w.writeTrack(t.findings, 0, "findings")
	}
	t.events = append(t.events,
		event{at: at, kind: typeInstant, track: t.findings, name: string(finding.Kind),
			notes: []annotation{{name: "finding", text: finding.Text}}})
}

// addQueueDepths adds the lengths of a rank's queues.
func (t *trace) addQueueDepths(d *pcapng.QueueDepths, at int64) {
	r := t.getRank(d.Rank)
	for i, n := range [len(queueNames)]int{d.Posted, d.Unexpected, d.Sends} {
		if r.queues[i] == 0 {
			r.queues[i] = t.newTrack()
			t.w.writeCounter(r.queues[i], r.track, queueNames[i])
		}
		t.events = append(t.events, event{at: at, kind: typeCounter, track: r.queues[i], value: int64(n)})
	}
}

// addCounters adds the counters of messages and words in flight for each rank.
func (t *trace) addCounters() {
	for _, number := range slices.Sorted(maps.Keys(t.ranks)) {
		r := t.ranks[number]
		messages, words := t.newTrack(), t.newTrack()
		t.w.writeCounter(messages, r.track, "messages in flight")
		t.w.writeCounter(words, r.track, "words in flight")
		slices.SortStableFunc(r.changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
		var n, w int64
		for i, c := range r.changes {
			n, w = n+c.messages, w+c.words
			if i+1 < len(r.changes) && r.changes[i+1].at == c.at {
				continue
			}
			t.events = append(t.events, event{at: c.at, kind: typeCounter, track: messages, value: n},
				event{at: c.at, kind: typeCounter, track: words, value: w})
		}
	}
}
