package core

import (
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/match"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Status describes a completed message, or one that a probe has found.
type Status struct {
	// Peer is the other rank; Send is the direction.
	Peer int
	Send bool
	// Bytes is the size of the message at its sender. Words is the same size in words, rounded up. A truncated
	// receive stored only as many bytes as its buffer holds. A probe returns UnknownLength if the peer does not
	// announce lengths.
	Bytes int64
	Words uint32
	// Datatype, Tag and Comm are as in the send. If the peer's profile carries no tags, Tag is the tag of the
	// receive.
	Datatype protocol.Datatype
	Tag      int
	Comm     uint32
	// Phases are the steps of the handshake, on the engine's clock.
	Phases handshake.Phases
	// Claim is the tag of a claimed message (see Match), or 0 if no matched probe has claimed the message.
	Claim int
}

// UnknownLength is Status.Bytes of a message announced without its length.
const UnknownLength = -1

// Elapsed returns the time from posting a message to its completion.
func (s Status) Elapsed() time.Duration {
	end := max(s.Phases.Ack, s.Phases.Data)
	if end < s.Phases.Start {
		return 0
	}
	return end - s.Phases.Start
}

// Request is a posted operation, or a message of a collective call.
type Request struct {
	// Owner is the driver's object for the request. It stays when the request is released.
	Owner any

	kind OpKind
	// peer is the other rank, or AnySource. p is its state, or nil for this rank itself and for AnySource.
	peer        int
	p           *peer
	tag         int32
	comm        uint32
	datatype    protocol.Datatype
	anyDatatype bool
	// buf is the payload of a send or the buffer of a receive. It is the caller's memory until the request
	// ends or is detached.
	buf    []byte
	posted handshake.Instant

	// Progress: a receive is posted (handle) until a message matches (inbound); a send belongs to a handshake (id) or
	// to an extended peer (sendID).
	handle  match.Handle
	order   uint64 // position of the receive among all that were posted
	inbound *inbound
	id      handshake.ID
	sendID  extended.ID
	// Call is set if the request is a collective call. message is set if the request is a message of a collective
	// call; flow is set if, in addition, the message is being forwarded.
	Call       *collective.Execution
	collective coll.Collective // of a call, even after its end
	message    *collective.Message
	flow       *flow
	// placingPeer is the peer whose placement may refer to this receive.
	placingPeer *peer

	detached     bool // transfer continues without the caller
	dropsMessage bool // has no caller: its message is dropped
	MayRest      bool // a library may leave it to the engine
	Awaited      bool // a caller sleeps until it ends
	// AwaitedElsewhere, if not nil, reports whether another process, for which the caller acts, sleeps until it ends.
	AwaitedElsewhere func() bool
	// restRef is the ref of a send that a library left, or 0.
	restRef uint32

	// Done means that the request is complete, and that Status and Err are set.
	Done   bool
	Status Status
	Err    error
}

// words returns the size of the payload or buffer in words.
func (r *Request) words() uint32 { return uint32(len(r.buf) / protocol.WordLen) }

// Operation returns the operation that the request was posted for.
func (r *Request) Operation() Operation {
	return Operation{Kind: r.kind, Peer: r.peer, Tag: int(r.tag), Comm: r.comm, Buf: r.buf, Datatype: r.datatype}
}

func (r *Request) isSend() bool { return r.kind == OpSend || r.kind == OpSendSync }

// observes reports whether the Observer is notified of messages exchanged with p, or with any peer if p is nil.
func (e *Core) observes(p *peer) bool { return e.observed && (p == nil || !p.cfg.Unobserved) }

// notifies reports whether the Observer is notified of the end of a request.
func (e *Core) notifies(r *Request) bool {
	p := r.p
	if s := r.Status.Peer; p == nil && s >= 0 && s < len(e.peers) {
		p = e.peers[s]
	}
	return e.observes(p)
}

// finish ends a request.
func (e *Core) finish(request *Request, err error) {
	if request.Done {
		return
	}
	request.Status.Send = request.isSend()
	if request.isSend() {
		request.Status.Peer, request.Status.Bytes, request.Status.Words = request.peer, int64(len(request.buf)),
			wordsOf(int64(len(request.buf)))
		request.Status.Datatype, request.Status.Tag, request.Status.Comm = request.datatype, int(request.tag), request.comm
	}
	if p := request.p; p != nil && !request.dropsMessage {
		if err != nil && p.sendErr != nil {
			err = &networkError{err, p.sendErr}
		}
		switch {
		case err != nil:
			p.failed++
		case request.isSend():
			p.sendsDone++
			p.sentBytes += uint64(request.Status.Bytes)
		}
	}
	request.Err = err
	e.lastEndAt, e.lastFailed = e.now, err != nil
	if e.cfg.Calls != nil {
		recordCall(e, request, true)
	}
	switch {
	case request.kind == opCollective && err != nil:
		e.cfg.Observer.CallFailed(e.rank, err)
	case e.observed && request.kind != opCollective && !request.dropsMessage && e.notifies(request):
		e.cfg.Observer.Done(e.rank, request.Status, err)
	}
	revokePlacement(request)
	request.buf, request.inbound = nil, nil
	request.Done = true
	// a library left it, and does not wait for it
	left := request.restRef != 0 && e.RestingSends.active[request.restRef] == request
	switch {
	case request.message != nil:
		e.endedMessages = append(e.endedMessages, request)
	case left:
		e.RestingSends.onEnded(request)
	case request.Owner != nil:
		e.out.Completed = append(e.out.Completed, request)
	}
}
