package perfetto

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/zrlmpi/zrlmpid/capture"
)

// Write writes the messages and findings of a report. Times are in nanoseconds since the first packet of the recording. Messages that have not
// ended last until the end of the recording.
func Write(to io.Writer, r *capture.Report) error {
	t := trace{w: writer{to: to}, end: nanoseconds(r.Summary.Seconds), lanes: map[side][]lane{}, ranks: map[int]*rank{}}
	messages := make([]*capture.Message, len(r.Messages))
	for i := range r.Messages {
		messages[i] = &r.Messages[i]
	}
	slices.SortStableFunc(messages, func(a, b *capture.Message) int { return cmp.Compare(a.Start, b.Start) })
	for _, m := range messages {
		t.message(m)
	}
	t.findings(r.Findings)
	t.counters()
	slices.SortStableFunc(t.events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	for i := range t.events {
		t.w.event(&t.events[i])
	}
	return t.w.err
}

func nanoseconds(seconds float64) int64 { return int64(seconds*1e9 + 0.5) }

// trace is a trace that is being made.
type trace struct {
	w      writer
	end    int64
	events []event
	tracks uint64 // how many there are
	ranks  map[int]*rank
	lanes  map[side][]lane
}

// rank is the process of a rank.
type rank struct {
	track uint64
	// changes are those of what it has under way.
	changes []change
}

// change is a message that begins or ends.
type change struct {
	at              int64
	messages, words int64
}

// side is one end of the messages from one rank to another one.
type side struct {
	rank, peer int
	sends      bool
}

// lane is a track of a side. Its slices do not overlap.
type lane struct {
	track uint64
	until int64 // when its last slice ends
}

// span is the time of a slice.
type span struct {
	name     string
	from, to int64
}

func (t *trace) newTrack() uint64 {
	t.tracks++
	return t.tracks
}

// rank returns a rank, whose process is described when it is needed first.
func (t *trace) rank(number int) *rank {
	r := t.ranks[number]
	if r == nil {
		r = &rank{track: t.newTrack()}
		t.ranks[number] = r
		t.w.process(r.track, number+1, fmt.Sprintf("rank %d", number)) // a process 0 would be the system's idle one
	}
	return r
}

// lane returns a track of a side that is free from one time to another.
func (t *trace) lane(s side, from, to int64) uint64 {
	lanes := t.lanes[s]
	for i := range lanes {
		if lanes[i].until <= from {
			lanes[i].until = to
			return lanes[i].track
		}
	}
	name := fmt.Sprintf("from rank %d", s.peer)
	if s.sends {
		name = fmt.Sprintf("to rank %d", s.peer)
	}
	if n := len(lanes); n > 0 {
		name += fmt.Sprintf(" (%d)", n+1)
	}
	l := lane{t.newTrack(), to}
	t.w.track(l.track, t.rank(s.rank).track, name)
	t.lanes[s] = append(lanes, l)
	return l.track
}

// message adds the slices of a message.
func (t *trace) message(m *capture.Message) {
	phases, from, to := t.phases(m)
	notes := []annotation{
		{name: "message", number: m.ID}, {name: "words", number: int64(m.Words)}, {name: "tag", number: int64(m.Tag)},
		{name: "retransmissions", number: int64(m.Retransmissions)}, {name: "verdict", text: m.Verdict},
	}
	name := fmt.Sprintf("%s %d", m.Call, m.Words)
	sent := t.lane(side{m.Src, m.Dst, true}, from, to)
	t.slice(sent, span{name, from, to}, uint64(m.ID), notes, phases)
	begun := from
	if c := m.Phases.RequestToClear; c != nil { // before, the receiver has nothing of it
		begun = min(from+nanoseconds(*c), to)
	}
	received := t.lane(side{m.Dst, m.Src, false}, begun, to)
	t.slice(received, span{name, begun, to}, uint64(m.ID), notes, nil)
	for _, number := range []int{m.Src, m.Dst} {
		r := t.rank(number)
		r.changes = append(r.changes, change{from, 1, int64(m.Words)}, change{to, -1, -int64(m.Words)})
	}
}

// phases returns the phases of a message that are known, and its time.
func (t *trace) phases(m *capture.Message) (phases []span, from, to int64) {
	from = nanoseconds(m.Start)
	at := from
	for _, p := range []struct {
		name string
		took *float64
	}{
		{"SEND_REQUEST to CLEAR_TO_SEND", m.Phases.RequestToClear}, {"CLEAR_TO_SEND to DATA", m.Phases.ClearToData},
		{"DATA to ACK", m.Phases.DataToAck},
	} {
		if p.took == nil {
			continue
		}
		phases = append(phases, span{p.name, at, at + nanoseconds(*p.took)})
		at += nanoseconds(*p.took)
	}
	switch {
	case m.Phases.Total != nil:
		to = from + nanoseconds(*m.Phases.Total)
	case !m.Complete:
		to = t.end
	}
	return phases, from, max(to, at)
}

// slice adds a slice with others inside.
func (t *trace) slice(track uint64, s span, flow uint64, notes []annotation, inside []span) {
	t.events = append(t.events, event{at: s.from, kind: typeBegin, track: track, name: s.name, flow: flow, notes: notes})
	for _, in := range inside {
		t.events = append(t.events, event{at: in.from, kind: typeBegin, track: track, name: in.name}, event{at: in.to, kind: typeEnd, track: track})
	}
	t.events = append(t.events, event{at: s.to, kind: typeEnd, track: track})
}

// findings adds the track of findings.
func (t *trace) findings(list []capture.Finding) {
	if len(list) == 0 {
		return
	}
	track := t.newTrack()
	t.w.track(track, 0, "findings")
	for i := range list {
		f := &list[i]
		t.events = append(t.events, event{
			at: nanoseconds(max(f.Time, 0)), kind: typeInstant, track: track, name: string(f.Kind), notes: []annotation{{name: "finding", text: f.Text}},
		})
	}
}

// counters adds what each rank has under way.
func (t *trace) counters() {
	for _, number := range slices.Sorted(maps.Keys(t.ranks)) {
		r := t.ranks[number]
		messages, words := t.newTrack(), t.newTrack()
		t.w.counter(messages, r.track, "messages under way")
		t.w.counter(words, r.track, "words under way")
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
