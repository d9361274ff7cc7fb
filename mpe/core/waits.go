package core

import (
	"fmt"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
)

// Waiting is an operation that has not ended, and what it waits for. Status, errors,
// counters and warnings are made of it.
type Waiting struct {
	handshake.Wait
	// Send is the direction. Posted: it is a receive that no message has matched;
	// AnySource: from any source, and Remote is undefined.
	Send, Posted, AnySource bool
	// Queued is how many operations of the same pair and direction are ahead of one
	// whose handshake has not begun. Behind: nothing of a send was sent, because of
	// others or for want of credit.
	Queued int
	Behind bool
	// Moving: data is on the move, so that Close waits for it.
	Moving bool
	// Elapsed is the time since Since, and Text the wait in words, without its age. They
	// are set in what the engine returns.
	Elapsed time.Duration
	Text    string

	// blocks: no other operation of the pair and direction begins before it has ended.
	blocks bool
	peer   *peer              // nil: none, or any
	of     string             // which call by shared buffers it is of, to follow what waits for a rank
	req    *Request           // nil if it is detached
	send   extended.SendState // of a send of the extended profile
}

// eachWait calls yield for every operation that has not ended: those that the peers'
// state machines have, and then receives that no message has matched, of each
// communicator from the oldest on.
func eachWait(e *Core, yield func(*Waiting)) {
	for _, p := range e.peers {
		if p == nil {
			continue
		}
		for w := range p.sendWaits {
			yield(w)
		}
		for w := range p.recvWaits {
			yield(w)
		}
	}
	for _, m := range e.matching.all {
		for w := range postedWaits(e, m) {
			yield(w)
		}
	}
	e.calls.EachAwait(func(rank int, since handshake.Instant, of string) {
		yield(&Waiting{
			Wait: handshake.Wait{State: handshake.WaitRequest, Local: uint32(e.rank), Remote: uint32(rank), Since: since}, peer: e.peers[rank], of: of,
		})
	})
}

// postedWaits yields the receives of a communicator that no message has matched, from the
// oldest on.
func postedWaits(e *Core, m *matcher) func(yield func(*Waiting) bool) {
	return func(yield func(*Waiting) bool) {
		var w Waiting
		m.EachPosted(func(_, _ int32, r *Request) bool {
			w = postedWait(e, r)
			return yield(&w)
		})
	}
}

func postedWait(e *Core, r *Request) Waiting {
	w := Waiting{
		Wait: handshake.Wait{
			ID: r.id, State: handshake.WaitRequest, For: handshake.WaitRequest.WaitsFor(), Local: uint32(e.rank), Since: r.posted, Words: r.words(),
		},
		Posted: true, AnySource: r.peer == AnySource, peer: r.p, req: r,
	}
	if r.peer >= 0 {
		w.Remote = uint32(r.peer)
	}
	return w
}

// waitOf returns what a request waits for that has not ended.
func waitOf(e *Core, r *Request) Waiting {
	switch {
	case r.send() && r.p == nil: // to this rank
		return Waiting{
			Wait: handshake.Wait{ID: r.id, State: handshake.WaitClear, Local: uint32(e.rank), Remote: uint32(e.rank), Since: r.posted},
			Send: true, req: r,
		}
	case r.send():
		for w := range r.p.sendWaits {
			if w.req == r {
				return *w
			}
		}
	case r.in != nil && r.in.p != nil:
		for w := range r.in.p.recvWaits {
			if w.req == r {
				return *w
			}
		}
	}
	w := postedWait(e, r)
	w.Queued = postedBefore(e, r)
	return w
}

// postedBefore counts the receives that a message for r would match first, if it
// fitted them.
func postedBefore(e *Core, r *Request) int {
	n := 0
	if r.p != nil {
		for w := range r.p.recvWaits {
			if w.blocks {
				n++
			}
		}
	}
	e.matching.of(r.comm).EachPosted(func(_, _ int32, other *Request) bool {
		if other == r {
			return false
		}
		if other.peer == r.peer && (r.p.noTags() || other.tag == r.tag) {
			n++
		}
		return true
	})
	return n
}

// waitError is the error of a request whose caller's context has ended with cause.
func waitError(e *Core, r *Request, cause error) *WaitError {
	w := waitOf(e, r)
	err := &WaitError{Wait: w.Wait, Queued: w.Queued, text: explain(e, &w, e.at), cause: cause, open: w.leavesOpen()}
	if w.peer != nil {
		err.Network = w.peer.sendErr
	}
	return err
}

// detached reports whether the caller of a send has ended it, and its transfer goes on.
func (w *Waiting) detached() bool { return w.Send && (w.req == nil || w.req.detached) }

// Waits is Engine.Waits.
func (e *Core) Waits(atLeast time.Duration) []Waiting {
	var ws []Waiting
	seen := make([]bool, len(e.peers)+1) // by source of a posted receive
	behind := (*peer)(nil)
	eachWait(e, func(w *Waiting) {
		switch {
		case w.Posted:
			from := w.req.peer + 1
			if seen[from] {
				return
			}
			seen[from] = true
		case w.of != "":
		case w.req == nil && !w.Send, w.Queued > 0:
			return
		case w.Behind: // one speaks for those behind it
			if behind == w.peer {
				return
			}
			behind = w.peer
		}
		if e.at-w.Since >= atLeast {
			finishWait(e, w)
			ws = append(ws, *w)
		}
	})
	return ws
}

// Moving returns the messages that keep Close waiting. The lock is held.
func (e *Core) Moving() []Waiting {
	var ws []Waiting
	named := map[*peer]bool{}
	eachWait(e, func(w *Waiting) {
		if w.Moving {
			named[w.peer] = true
			finishWait(e, w)
			ws = append(ws, *w)
		}
	})
	for _, p := range e.peers {
		if p != nil && p.busy() && !named[p] { // not of messages, but of what ends them
			ws = append(ws, Waiting{
				Wait: handshake.Wait{Local: uint32(e.rank), Remote: uint32(p.rank), Since: e.at},
				Text: fmt.Sprintf("rank %d has sent rank %d what it has not acknowledged", e.rank, p.rank),
			})
		}
	}
	return ws
}
