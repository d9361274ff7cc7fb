package core

import (
	"fmt"
	"math"
)

// Probe is a caller that waits for a message.
type Probe struct {
	Match
	// Wake is called when it is to look again, and Err is why it ends without a message.
	Wake func()
	Err  error
}

func (e *Core) AddProbe(p *Probe) { e.probes = append(e.probes, p) }

// wake has the driver call a function when the event has ended.
func (e *Core) wake(f func()) { e.out.Wake = append(e.out.Wake, f) }

// Found describes the message that a receive would get, if there is one. A message of a peer without communicators cannot be
// claimed: it exists by the peer's SEND_REQUEST only.
func (e *Core) Found(m Match) (Status, bool) {
	r := Request{tag: int32(m.Tag), peer: m.Source}
	if m.Source != AnySource {
		r.p = e.peers[m.Source]
	}
	matcher := e.matchers.of(m.Comm)
	u, h, ok := matcher.ProbeHandle(int32(m.Source), r.matchTag())
	if !ok {
		return Status{}, false
	}
	st := u.status(m.Comm)
	if p := e.peers[st.Peer]; m.Claim && (p == nil || !p.limits.NoComms) {
		in := u.in
		if in == nil {
			in = e.record(&u, m.Comm, h.Order())
			in.handle = h
			matcher.Replace(h, unexpected{in: in})
		}
		st.Claim = e.claim(in)
	}
	if m.Tag != AnyTag {
		st.Tag = m.Tag // a peer without tags has that of the receive
	}
	return st, true
}

// claim moves a message to the communicator of those that are claimed, and returns its tag there: 0 if there is no room, and the message stays
// where it is. In all else it is as any unexpected message.
func (e *Core) claim(in *inbound) int {
	to := e.matchers.of(ClaimComm)
	if to.Unexpected() >= e.matchers.limits.Unexpected {
		return 0
	}
	e.matchers.of(in.comm).RemoveUnexpected(in.handle)
	e.claims = e.claims%math.MaxInt32 + 1
	in.comm, in.tag = ClaimComm, e.claims
	if err := e.arrive(in); err != nil { // there is room
		e.refused(in)
		return 0
	}
	return int(in.tag)
}

// wakeProbes wakes the probes that may be waiting for the message.
func (e *Core) wakeProbes(in *inbound) {
	for _, p := range e.probes {
		if p.Comm == in.comm && (p.Source == AnySource || p.Source == in.source) {
			e.wake(p.Wake)
		}
	}
}

func (e *Core) EndProbe(mine *Probe) {
	for i, p := range e.probes {
		if p == mine {
			e.probes = append(e.probes[:i], e.probes[i+1:]...)
			return
		}
	}
}

// DescribeMatch puts what a receive waits for into words.
func DescribeMatch(m Match) string {
	s := " from any rank"
	if m.Source != AnySource {
		s = fmt.Sprintf(" from rank %d", m.Source)
	}
	if m.Tag != AnyTag {
		s += fmt.Sprintf(" with tag %d", m.Tag)
	}
	if m.Comm != 0 {
		s += fmt.Sprintf(" in communicator %d", m.Comm)
	}
	return s
}
