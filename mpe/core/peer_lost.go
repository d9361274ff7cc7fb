package core

import (
	"cmp"
	"fmt"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// PeerLostError is the error of a receive posted to a peer, or of a probe waiting for its messages, when the peer
// was lost: a message that the peer had not sent by then will never arrive. A receive posted later waits for the
// peer's return.
type PeerLostError struct {
	// Rank is the rank of the peer.
	Rank int
	// Event is the evidence of the loss: EventSessionChanged, EventClosedByPeer, EventProcessEnded or
	// EventUnreachable.
	Event state.Event
	// Reason is the transport's reason for EventUnreachable; empty if the peer was silent.
	Reason string `json:",omitempty"`
	// Left means that the peer is a rank of this rank's job, and does not return.
	Left bool `json:",omitempty"`
}

// lostTexts are the meanings of events that end a session.
var lostTexts = [state.NumEvents]string{
	state.EventSessionChanged: "was restarted, or had declared us unreachable",
	state.EventClosedByPeer:   "shut down",
	state.EventProcessEnded:   "is gone: its process exited",
	state.EventUnreachable:    "does not answer",
}

// Error describes the loss of the peer, and suggests a remedy.
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

// endsSession reports whether no message is expected from a peer after an event.
func endsSession(e state.Event) bool { return int(e) < len(lostTexts) && lostTexts[e] != "" }

// PeerFailedError is the error of a receive posted to a stand-in of this process, or of a probe waiting for its
// messages, when the stand-in's kernel failed. If no receive or probe was waiting and an answer is due, the next
// receive gets the error. Later receives wait for the next message.
type PeerFailedError struct {
	// Rank is the rank of the stand-in, and Err is the failure of its kernel.
	Rank int
	Err  error
}

// Error describes why the message does not arrive.
func (e *PeerFailedError) Error() string {
	return fmt.Sprintf("the kernel of rank %d failed, so the expected message may never arrive: %v", e.Rank, e.Err)
}

// Is makes errors.Is(err, ErrPeerLost) true. The error does not match Err, because the kernel's failure is not the
// receive's: a message truncated in the kernel, for example, was not truncated here.
func (e *PeerFailedError) Is(target error) bool { return target == ErrPeerLost }

// onPeerLost ends the unmatched receives posted to the peer, and the probes waiting for its messages, because of an
// event. reason may be empty. Receives from any source continue: another rank may send the message, and so
// may the peer when it returns.
func (p *peer) onPeerLost(why state.Event, reason string) {
	err := &PeerLostError{Rank: p.rank, Event: why, Reason: reason, Left: p.deadEnd() != nil}
	p.e.matching.endPosted(p.rank, err)
	p.e.matching.endWildcards()
	p.e.calls.OnPeerLost(p.rank, err)
}

// endPosted ends the unmatched receives from a source, and the probes waiting for its messages. If the source is
// AnySource, it ends only operations in the world. It returns the number of receives that it ended.
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

// onDeadEnd ends the operations that wait for a peer that cannot continue. If this is true of all peers, it also
// ends receives from any source. This rank does not count as a peer that can continue, although it may still send
// to itself.
func (p *peer) onDeadEnd(err error) {
	p.abort(err, false)
	p.e.matching.endPosted(p.rank, err)
	p.e.matching.endWildcards()
}

// endWildcards ends the receives and probes from any source if no peer can send to them.
func (x *matching) endWildcards() {
	if err := x.core.CheckSender(AnySource, 0); err != nil {
		x.endPosted(AnySource, err)
	}
}

// CheckSender returns the reason why no message can arrive for a receive or probe posted now, or nil if one can. The
// reason is that none of the peers that could send the message can continue.
func (e *Core) CheckSender(source int, comm uint32) (err error) {
	switch {
	case source == e.rank:
		return nil
	case source != AnySource:
		return e.peers[source].deadEnd()
	case comm != 0: // peers with dead ends send in the world
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
