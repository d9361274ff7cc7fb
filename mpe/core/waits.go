package core

import (
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// Waiting describes a pending operation and the reason for its wait. Status, errors, counters and warnings derive from
// it.
type Waiting struct {
	state.Pending
	// NotBegun means that no part of a send has been transmitted yet, because of earlier sends or for lack of credit.
	NotBegun bool
	// IsTransferring means that a transfer is in progress, which Close waits for.
	IsTransferring bool
	// Elapsed is the duration of the wait so far, and facts holds the facts that Text describes. Both are set only in
	// results of the engine's methods.
	Elapsed time.Duration
	facts   *state.WaitFacts

	// blocksPair means that the operation must end before another operation of the same handshake pair and direction
	// can begin.
	blocksPair bool
	peer       *peer              // nil for this rank or any
	req        *Request           // nil if it is detached
	send       extended.SendState // of a send of the extended profile
}

// eachWait calls yield for every pending operation: first the operations in the peers' state machines, then the
// unmatched receives, per communicator in posting order, and last the calls that wait in shared buffers.
func eachWait(core *Core, yield func(*Waiting)) {
	for p := range core.peers.created {
		for w := range p.sendWaits {
			yield(w)
		}
		for w := range p.recvWaits {
			yield(w)
		}
	}
	for _, m := range core.matching.matchers {
		for w := range postedWaits(core, m) {
			yield(w)
		}
	}
	core.calls.EachAwait(func(rank int, since handshake.Instant, of collective.Origin) {
		w := Waiting{peer: core.peers.at(rank)}
		w.State, w.Local, w.Remote, w.Since = handshake.WaitRequest, uint32(core.rank), uint32(rank), since
		w.Call = &of
		yield(&w)
	})
}

// postedWaits yields the unmatched receives of a communicator, oldest first.
func postedWaits(e *Core, m *matcher) func(yield func(*Waiting) bool) {
	return func(yield func(*Waiting) bool) {
		var w Waiting
		m.EachPosted(func(_, _ int32, r *Request) bool {
			w = postedWait(e, r)
			return yield(&w)
		})
	}
}

func postedWait(e *Core, request *Request) Waiting {
	waiting := Waiting{peer: request.p, req: request}
	waiting.Wait = handshake.Wait{
		ID: request.id, State: handshake.WaitRequest, For: handshake.WaitRequest.AwaitedPacket(), Local: uint32(e.rank),
		Since: request.posted, Words: request.words(),
	}
	waiting.Posted, waiting.AnySource = true, request.peer == AnySource
	if request.peer >= 0 {
		waiting.Remote = uint32(request.peer)
	}
	return waiting
}

// waitOf describes the wait of a pending request.
func waitOf(core *Core, request *Request) Waiting {
	switch {
	case request.isSend() && request.p == nil: // to this rank
		w := Waiting{req: request}
		w.Wait = handshake.Wait{ID: request.id, State: handshake.WaitClear, Local: uint32(core.rank),
			Remote: uint32(core.rank),
			Since:  request.posted}
		w.Send = true
		return w
	case request.isSend():
		for w := range request.p.sendWaits {
			if w.req == request {
				return *w
			}
		}
	case request.inbound != nil && request.inbound.p != nil:
		for w := range request.inbound.p.recvWaits {
			if w.req == request {
				return *w
			}
		}
	}
	w := postedWait(core, request)
	w.Queued = postedBefore(core, request)
	return w
}

// postedBefore returns the number of receives that would match a message before request does, if the message matches
// all of them.
func postedBefore(core *Core, request *Request) int {
	n := 0
	if request.p != nil {
		for w := range request.p.recvWaits {
			if w.blocksPair {
				n++
			}
		}
	}
	core.matching.forComm(request.comm).EachPosted(func(_, _ int32, other *Request) bool {
		if other == request {
			return false
		}
		if other.peer == request.peer && (request.p.noTags() || other.tag == request.tag) {
			n++
		}
		return true
	})
	return n
}

// waitError returns the error of a request whose caller's context is done. cause is the reason given by the context.
func waitError(e *Core, r *Request, cause error) *WaitError {
	w := waitOf(e, r)
	err := &WaitError{Wait: w.Wait, Queued: w.Queued, facts: new(state.WaitFacts), at: e.now, cause: cause}
	w.fillFacts(e, err.facts)
	if w.peer != nil {
		err.Network = w.peer.sendErr
	}
	return err
}

// detached reports whether the operation is a send that continues without its caller.
func (w *Waiting) detached() bool { return w.Send && (w.req == nil || w.req.detached) }

// Text describes the wait, without its duration. It is empty for a Waiting that no method of the engine returned.
func (w *Waiting) Text() string {
	if w.facts == nil {
		return ""
	}
	return w.facts.Text()
}

// fillFacts sets Elapsed, and copies the facts that explain the wait.
func (w *Waiting) fillFacts(e *Core, facts *state.WaitFacts) {
	w.Elapsed = e.now - w.Since
	facts.Pending, facts.Detached = w.Pending, w.detached()
	if r := w.req; r != nil {
		facts.PostedAt, facts.Tag, facts.Comm, facts.Discarded = r.posted, int(r.tag), r.comm, r.dropsMessage
		if facts.InCall = r.message != nil; facts.InCall {
			facts.CallOrigin = r.message.Origin()
		}
	}
	switch p := w.peer; {
	case p == nil || w.Call != nil:
	case p.extended != nil:
		facts.Link = state.ExtendedLink
		p.extended.fillFacts(w, &facts.Extended)
	default:
		facts.Link = state.HandshakeLink
		p.handshake.fillFacts(&facts.Handshake)
	}
}

// Waits implements Engine.Waits.
func (e *Core) Waits(atLeast time.Duration) []Waiting {
	var ws []Waiting
	seen := make([]bool, len(e.peers.list)+1) // by source of a posted receive
	behind := (*peer)(nil)
	eachWait(e, func(waiting *Waiting) {
		switch {
		case waiting.Posted:
			from := waiting.req.peer + 1
			if seen[from] {
				return
			}
			seen[from] = true
		case waiting.Call != nil:
		case waiting.req == nil && !waiting.Send, waiting.Queued > 0:
			return
		case waiting.NotBegun: // one send represents all sends behind it
			if behind == waiting.peer {
				return
			}
			behind = waiting.peer
		}
		if e.now-waiting.Since >= atLeast {
			waiting.facts = new(state.WaitFacts)
			waiting.fillFacts(e, waiting.facts)
			ws = append(ws, *waiting)
		}
	})
	return ws
}

// ActiveTransfers returns the messages that Close is waiting for. The caller holds the lock.
func (e *Core) ActiveTransfers() []Waiting {
	var ws []Waiting
	named := map[*peer]bool{}
	eachWait(e, func(w *Waiting) {
		if w.IsTransferring {
			named[w.peer] = true
			w.facts = new(state.WaitFacts)
			w.fillFacts(e, w.facts)
			ws = append(ws, *w)
		}
	})
	for p := range e.peers.created {
		if p.busy() && !named[p] { // only acknowledgements are outstanding
			var w Waiting
			w.Local, w.Remote, w.Since = uint32(e.rank), uint32(p.rank), e.now
			w.facts = &state.WaitFacts{Pending: w.Pending, Unacknowledged: true}
			ws = append(ws, w)
		}
	}
	return ws
}
