package core

import "math"

// Probe represents a caller that waits for a message to arrive.
type Probe struct {
	Match
	// The driver calls Wake when the caller should call Find again. If no message can arrive, Err is the reason.
	Wake func()
	Err  error
}

// Add registers a probe until Remove is called. The core wakes the probe whenever it receives a message that the probe
// may match.
func (s *Probes) Add(p *Probe) { s.list = append(s.list, p) }

// wake makes the driver call the function f at the end of the event.
func (e *Core) wake(f func()) { e.out.Wake, e.out.Rare = append(e.out.Wake, f), true }

// Find returns the status of the message that a receive with match would match, if any, and claims the message if
// match.Claim is set. A message from a peer without communicators cannot be claimed, because only its SEND_REQUEST has
// been received.
func (s *Probes) Find(match Match) (Status, bool) {
	r := Request{tag: int32(match.Tag), peer: match.Source}
	if match.Source != AnySource {
		r.p = s.core.peers.at(match.Source)
	}
	matcher := s.core.matching.forComm(match.Comm)
	u, handle, ok := matcher.ProbeHandle(int32(match.Source), r.matchTag())
	if !ok {
		return Status{}, false
	}
	st := u.status(match.Comm)
	if p := s.core.peers.at(st.Peer); match.Claim && (p == nil || !p.limits.NoComms) {
		in := u.inbound
		if in == nil {
			in = s.core.matching.wakeRecord(&u, match.Comm, handle.Order())
			in.handle = handle
			matcher.Replace(handle, unexpected{inbound: in})
		}
		st.Claim = s.core.matching.claim(in)
	}
	if match.Tag != AnyTag {
		st.Tag = match.Tag // a message without a tag adopts the receive's
	}
	return st, true
}

// claim moves a message to ClaimComm, where it is an ordinary unexpected message, and returns its tag there. If
// ClaimComm is full, claim leaves the message in place and returns 0.
func (x *matching) claim(in *inbound) int {
	to := x.forComm(ClaimComm)
	if to.Unexpected() >= x.limits.Unexpected {
		return 0
	}
	x.forComm(in.comm).RemoveUnexpected(in.handle)
	x.lastClaim = x.lastClaim%math.MaxInt32 + 1
	in.comm, in.tag = ClaimComm, x.lastClaim
	if err := x.arrive(in); err != nil { // impossible: the limit was checked
		x.rejectFull(in)
		return 0
	}
	return int(in.tag)
}

// wake wakes the probes that may match a message.
func (s *Probes) wake(in *inbound) {
	for _, p := range s.list {
		if p.Comm == in.comm && (p.Source == AnySource || p.Source == in.source) {
			s.core.wake(p.Wake)
		}
	}
}

// Remove removes a probe, or does nothing if mine is nil.
func (s *Probes) Remove(mine *Probe) {
	for i, p := range s.list {
		if p == mine {
			s.list = append(s.list[:i], s.list[i+1:]...)
			return
		}
	}
}

// Probes holds the probes of callers that wait for messages.
type Probes struct {
	core *Core
	list []*Probe
}
