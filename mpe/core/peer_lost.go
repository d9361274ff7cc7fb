package core

import (
	"cmp"
	"fmt"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// PeerLostError is a receive that was posted to a peer, or a probe that waited for its
// messages, when the peer was lost: what it has not sent by then does not come. A receive
// that is posted later waits for the peer's return.
type PeerLostError struct {
	// Rank is the peer.
	Rank int
	// Event shows that it was lost: EventSessionChanged, EventClosedByPeer, EventProcessEnded
	// or EventUnreachable.
	Event state.Event
	// Reason why the transport has no way to the peer, after EventUnreachable; empty if the peer was silent.
	Reason string `json:",omitempty"`
	// Left is true if the peer is a rank of this rank's job, and does not return.
	Left bool `json:",omitempty"`
}

// lostTexts are what the events show that end a session.
var lostTexts = [state.NumEvents]string{
	state.EventSessionChanged: "was restarted, or had declared us unreachable",
	state.EventClosedByPeer:   "shut down",
	state.EventProcessEnded:   "is gone, its process has ended",
	state.EventUnreachable:    "does not answer",
}

// Error says what became of the peer, and what to do.
func (e *PeerLostError) Error() string {
	text := "is gone"
	if endsSession(e.Event) { // it may come from another version
		text = lostTexts[e.Event]
	}
	if e.Reason != "" {
		return fmt.Sprintf("rank %d cannot be reached: %s", e.Rank, e.Reason)
	}
	if e.Left && e.Event == state.EventClosedByPeer {
		text = "has called MPI_Finalize"
	}
	if e.Left {
		return fmt.Sprintf("rank %d %s, so it sends nothing more", e.Rank, text)
	}
	return fmt.Sprintf("rank %d %s, so it sends nothing for a receive that was posted before: post it again to wait for the rank's return", e.Rank, text)
}

// Is makes errors.Is(err, ErrPeerLost) true, and errors.Is with what the peer's messages under way
// have ended with: extended.ErrTimeout if it cannot be reached, otherwise extended.ErrSession.
func (e *PeerLostError) Is(target error) bool {
	ended := extended.ErrSession
	if e.Event == state.EventUnreachable {
		ended = extended.ErrTimeout
	}
	return target == ErrPeerLost || target == ended
}

// endsSession reports whether an event ends what a peer was expected to send.
func endsSession(e state.Event) bool { return int(e) < len(lostTexts) && lostTexts[e] != "" }

// PeerFailedError is a receive that was posted to a stand-in of this process, or a probe that waited for its messages,
// when the kernel of the stand-in failed; or, if there was none and its answer is due, the next receive. Later ones
// wait for its next message.
type PeerFailedError struct {
	// Rank is the stand-in, and Err the failure of its kernel.
	Rank int
	Err  error
}

// Error says why the message does not come.
func (e *PeerFailedError) Error() string {
	return fmt.Sprintf("the kernel of rank %d failed, so the message that was expected of it may not come: %v", e.Rank, e.Err)
}

// Is makes errors.Is(err, ErrPeerLost) true. The failure of the kernel is no property of the receive: that a message
// was truncated there does not mean that one was here.
func (e *PeerFailedError) Is(target error) bool { return target == ErrPeerLost }

// lost ends the receives that are posted to the peer and that no message has matched, and the probes that wait for its
// messages, because of an event, and for a reason that may be empty. Those from any source go on: another rank may send
// what they wait for, and so may the peer when it returns.
func (p *peer) lost(why state.Event, reason string) {
	err := &PeerLostError{Rank: p.rank, Event: why, Reason: reason, Left: p.deadEnd() != nil}
	p.e.matching.endPosted(p.rank, err)
	p.e.matching.endWildcards()
	p.e.calls.PeerLost(p.rank, err)
}

// endPosted ends the receives from a source that no message has matched, and the probes that wait for its
// messages. Those from any source end in the world only. It returns the number of receives.
func (x *matching) endPosted(from int, err error) int {
	var list []*Request
	for comm, m := range x.all {
		if from == AnySource && comm != 0 {
			continue
		}
		m.EachPosted(func(source, _ int32, r *Request) bool {
			if int(source) == from {
				list = append(list, r)
			}
			return true
		})
	}
	for _, r := range list {
		x.of(r.comm).CancelPosted(r.handle)
		x.c.finish(r, err)
	}
	for _, pr := range x.c.Probes.list {
		if pr.Source == from && (from != AnySource || pr.Comm == 0) {
			pr.Err = err
			x.c.wake(pr.Wake)
		}
	}
	return len(list)
}

// deadEnded ends what waits for a peer that cannot go on, and what waits for any peer if that is so of all. This
// rank itself does not count: what it sends itself has to be posted, too.
func (p *peer) deadEnded(err error) {
	p.abort(err, false)
	p.e.matching.endPosted(p.rank, err)
	p.e.matching.endWildcards()
}

// endWildcards ends the receives from any source, and the probes, if no peer can send to them.
func (x *matching) endWildcards() {
	if err := x.c.NoSender(AnySource, 0); err != nil {
		x.endPosted(AnySource, err)
	}
}

// NoSender returns why a receive that is posted now, or a probe, gets no message: each peer that could send one
// cannot go on. Otherwise it returns nil.
func (e *Core) NoSender(source int, comm uint32) (err error) {
	switch {
	case source == e.rank:
		return nil
	case source != AnySource:
		return e.peers[source].deadEnd()
	case comm != 0: // peers that have dead ends send in the world
		return nil
	}
	for _, p := range e.peers {
		if p == nil {
			continue
		}
		why := p.deadEnd()
		if why == nil {
			return nil
		}
		err = cmp.Or(err, why)
	}
	return err
}
