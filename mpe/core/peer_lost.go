package core

import (
	"cmp"
	"fmt"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// PeerLostError is returned by a receive posted to a peer, or by a probe waiting for its messages, when the peer is
// lost: messages that the peer had not sent by then will never arrive. A receive posted later waits until the peer is
// back.
type PeerLostError struct {
	// Rank is the rank of the peer.
	Rank int
	// Event is the event that revealed the loss: EventSessionChanged, EventClosedByPeer, EventProcessEnded or
	// EventUnreachable.
	Event state.Event
	// Reason is the reason that the transport reported for EventUnreachable. It is empty if the peer just did not
	// answer.
	Reason string `json:",omitempty"`
	// Left means that the peer belongs to the same job as this rank, and will not return.
	Left bool `json:",omitempty"`
}

// lostTexts describes, for each event that ends a session, what has happened to the peer.
var lostTexts = [state.NumEvents]string{
	state.EventSessionChanged: "was restarted, or had declared us unreachable",
	state.EventClosedByPeer:   "shut down",
	state.EventProcessEnded:   "is gone: its process exited",
	state.EventUnreachable:    "does not answer",
}

// Error describes the loss of the peer, and suggests a remedy if the peer may return.
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
	return fmt.Sprintf("rank %d %s, so no message will match a receive posted before: post it again to wait until "+
		"the rank is back", e.Rank, text)
}

// Is makes errors.Is(err, ErrPeerLost) true. It also matches the error of the peer's messages in flight:
// extended.ErrTimeout if the peer is unreachable, otherwise extended.ErrSession.
func (e *PeerLostError) Is(target error) bool {
	ended := extended.ErrSession
	if e.Event == state.EventUnreachable {
		ended = extended.ErrTimeout
	}
	return target == ErrPeerLost || target == ended
}

// endsSession reports whether an event ends the peer's session, after which it completes no earlier message.
func endsSession(e state.Event) bool { return int(e) < len(lostTexts) && lostTexts[e] != "" }

// PeerFailedError is the error of a receive posted to a stand-in of this process, or of a probe waiting for its
// messages, when the stand-in's kernel failed. If no receive was posted and an answer is due, the next receive fails
// with it. Later receives wait for the next message.
type PeerFailedError struct {
	// Rank is the rank of the stand-in, and Err is the failure of its kernel.
	Rank int
	Err  error
}

// Error describes why the message does not arrive.
func (e *PeerFailedError) Error() string {
	return fmt.Sprintf("the kernel of rank %d failed, so the expected message may never arrive: %v", e.Rank, e.Err)
}

// Is makes errors.Is(err, ErrPeerLost) true. The error does not match Err, because the kernel failed, not the receive:
// ErrTruncated in the kernel, for example, does not mean that this receive was truncated.
func (e *PeerFailedError) Is(target error) bool { return target == ErrPeerLost }

// onPeerLost ends the unmatched receives posted to the peer, and the probes waiting for its messages, because of an
// event. reason may be empty. Receives from any source continue while any rank may still send: another rank, or the
// peer when it is back.
func (p *peer) onPeerLost(why state.Event, reason string) {
	err := &PeerLostError{Rank: p.rank, Event: why, Reason: reason, Left: p.deadEnd() != nil}
	p.e.matching.endPosted(p.rank, err)
	p.e.matching.endWildcards()
	p.e.calls.OnPeerLost(p.rank, err)
}

// endPosted ends the unmatched receives from a source, and the probes waiting for its messages, and returns the number
// of receives ended. For AnySource, it ends only operations in the world.
func (x *matching) endPosted(from int, err error) int {
	var list []*Request
	for comm, m := range x.matchers {
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
		x.forComm(r.comm).CancelPosted(r.handle)
		x.core.finish(r, err)
	}
	for _, pr := range x.core.Probes.list {
		if pr.Source == from && (from != AnySource || pr.Comm == 0) {
			pr.Err = err
			x.core.wake(pr.Wake)
		}
	}
	return len(list)
}

// onDeadEnd ends the operations that wait for a peer that cannot continue. If no peer can continue, it also ends
// receives from any source, although this rank could still send to itself.
func (p *peer) onDeadEnd(err error) {
	p.abort(err, false)
	p.e.matching.endPosted(p.rank, err)
	p.e.matching.endWildcards()
}

// endWildcards ends the receives and probes from any source if no peer can send them a message.
func (x *matching) endWildcards() {
	if err := x.core.CheckSender(AnySource, 0); err != nil {
		x.endPosted(AnySource, err)
	}
}

// CheckSender returns nil if a message can arrive for a receive or probe posted now. Otherwise it returns the reason
// why none of the possible senders can continue.
func (e *Core) CheckSender(source int, comm uint32) (err error) {
	switch {
	case source == e.rank:
		return nil
	case source != AnySource:
		return e.peers.at(source).deadEnd()
	case comm != 0: // other peers than those with dead ends may send there
		return nil
	}
	for rank := range e.peers.list {
		if rank == e.rank {
			continue
		}
		why := e.peers.at(rank).deadEnd()
		if why == nil {
			return nil
		}
		err = cmp.Or(err, why)
	}
	return err
}
