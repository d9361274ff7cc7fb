package core

import "math"

// Probe is a caller that waits for a message.
type Probe struct {
	Match
	// Wake is called when it is to look again, and Err is why it ends without a message.
	Wake func()
	Err  error
}

// Add has a probe woken when there may be a message for it, until End.
func (s *Probes) Add(p *Probe) { s.list = append(s.list, p) }

// wake has the driver call a function when the event has ended.
func (e *Core) wake(f func()) { e.out.Wake, e.out.Rare = append(e.out.Wake, f), true }

// Find describes the message that a receive would get, if there is one. A message of a peer without communicators cannot be
// claimed: it exists by the peer's SEND_REQUEST only.
func (s *Probes) Find(m Match) (Status, bool) {
	r := Request{tag: int32(m.Tag), peer: m.Source}
	if m.Source != AnySource {
		r.p = s.c.peers[m.Source]
	}
	matcher := s.c.matching.of(m.Comm)
	u, h, ok := matcher.ProbeHandle(int32(m.Source), r.matchTag())
	if !ok {
		return Status{}, false
	}
	st := u.status(m.Comm)
	if p := s.c.peers[st.Peer]; m.Claim && (p == nil || !p.limits.NoComms) {
		in := u.in
		if in == nil {
			in = s.c.matching.record(&u, m.Comm, h.Order())
			in.handle = h
			matcher.Replace(h, unexpected{in: in})
		}
		st.Claim = s.c.matching.claim(in)
	}
	if m.Tag != AnyTag {
		st.Tag = m.Tag // a peer without tags has that of the receive
	}
	return st, true
}

// claim moves a message to the communicator of those that are claimed, and returns its tag there: 0 if there is no room, and the message stays
// where it is. In all else it is as any unexpected message.
func (x *matching) claim(in *inbound) int {
	to := x.of(ClaimComm)
	if to.Unexpected() >= x.limits.Unexpected {
		return 0
	}
	x.of(in.comm).RemoveUnexpected(in.handle)
	x.claims = x.claims%math.MaxInt32 + 1
	in.comm, in.tag = ClaimComm, x.claims
	if err := x.arrive(in); err != nil { // there is room
		x.refused(in)
		return 0
	}
	return int(in.tag)
}

// wake wakes the probes that may be waiting for the message.
func (s *Probes) wake(in *inbound) {
	for _, p := range s.list {
		if p.Comm == in.comm && (p.Source == AnySource || p.Source == in.source) {
			s.c.wake(p.Wake)
		}
	}
}

func (s *Probes) End(mine *Probe) {
	for i, p := range s.list {
		if p == mine {
			s.list = append(s.list[:i], s.list[i+1:]...)
			return
		}
	}
}

// Probes are the callers that wait for messages.
type Probes struct {
	c    *Core
	list []*Probe
}
