package mpe

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/extended"
)

// PeerLostError is a receive that was posted to a peer, or a probe that waited for its
// messages, when the peer was lost: what it has not sent by then does not come. A receive
// that is posted later waits for the peer's return.
type PeerLostError struct {
	// Rank is the peer.
	Rank int
	// Event shows that it was lost: EventSessionChanged, EventClosedByPeer, EventProcessEnded
	// or EventUnreachable.
	Event Event
}

// lostTexts are what the events show that end a session.
var lostTexts = [NumEvents]string{
	EventSessionChanged: "was restarted, or had declared us unreachable",
	EventClosedByPeer:   "shut down",
	EventProcessEnded:   "is gone, its process has ended",
	EventUnreachable:    "is not running or cannot be reached",
}

// Error says what became of the peer, and what to do.
func (e *PeerLostError) Error() string {
	text := "is gone"
	if e.Event.endsSession() { // it may come from another version
		text = lostTexts[e.Event]
	}
	return fmt.Sprintf("rank %d %s, so it sends nothing for a receive that was posted before: post it again to wait for the rank's return", e.Rank, text)
}

// Is makes errors.Is(err, ErrPeerLost) true, and errors.Is with what the peer's messages under way
// have ended with: extended.ErrTimeout if it cannot be reached, otherwise extended.ErrSession.
func (e *PeerLostError) Is(target error) bool {
	ended := extended.ErrSession
	if e.Event == EventUnreachable {
		ended = extended.ErrTimeout
	}
	return target == ErrPeerLost || target == ended
}

// endsSession reports whether an event ends what a peer was expected to send.
func (e Event) endsSession() bool { return int(e) < len(lostTexts) && lostTexts[e] != "" }

// lost ends the receives that are posted to the peer and that no message has matched, and
// the probes that wait for its messages, because of an event. Those from any source go on:
// another rank may send what they wait for, and so may the peer when it returns.
func (p *peer) lost(why Event) {
	e := p.e
	var list []*Request
	for _, m := range e.matchers.all {
		m.EachPosted(func(source, _ int32, r *Request) bool {
			if int(source) == p.rank {
				list = append(list, r)
			}
			return true
		})
	}
	var err error
	if len(list)+len(e.probes) > 0 {
		err = &PeerLostError{Rank: p.rank, Event: why}
	}
	for _, r := range list {
		e.matchers.of(r.comm).CancelPosted(r.handle)
		e.finish(r, err)
	}
	e.calls.PeerLost(p.rank, &PeerLostError{Rank: p.rank, Event: why})
	for _, pr := range e.probes {
		if pr.Source == p.rank {
			pr.err = err
			notify(pr.found)
		}
	}
}
