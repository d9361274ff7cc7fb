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

// Status describes a message that is complete, or that a probe has found.
type Status struct {
	// Peer is the rank at the other end. Send means that the message was sent to it, not received from it.
	Peer int
	Send bool
	// Bytes is the length of the message at its sender, even if the receive was truncated. Words is the same length in
	// words, rounded up. For a probe, Bytes is UnknownLength if the peer does not announce lengths.
	Bytes int64
	Words uint32
	// Datatype, Tag and Comm are those of the send. If the peer's profile carries no tags, Tag is the tag of the
	// receive.
	Datatype protocol.Datatype
	Tag      int
	Comm     uint32
	// Phases holds the times of the steps of the handshake, on the engine's clock.
	Phases handshake.Phases
	// Claim is the tag of a claimed message (see Match), or 0 if the message is not claimed.
	Claim int
}

// UnknownLength is the value of Status.Bytes for a message announced without its length.
const UnknownLength = -1

// Elapsed returns the time from the posting of a message to its completion.
func (s Status) Elapsed() time.Duration {
	end := max(s.Phases.Ack, s.Phases.Data)
	if end < s.Phases.Start {
		return 0
	}
	return end - s.Phases.Start
}

// Request represents a posted operation, or a message of a collective call.
type Request struct {
	// Owner is the driver's object for the request. It remains valid after the request is released.
	Owner any

	kind OpKind
	// peer is the other rank, or AnySource. p is the peer's state. It is nil if peer is this rank itself or AnySource.
	peer        int
	p           *peer
	tag         int32
	comm        uint32
	datatype    protocol.Datatype
	anyDatatype bool
	// buf is the payload of a send or the buffer of a receive. It is the caller's memory unless the request is
	// detached.
	buf    []byte
	posted handshake.Instant

	// The next fields record the progress. handle locates a receive in the queue until a message, inbound, matches it.
	// A send is identified to its handshake by id, or to its extended.Conn by sendID.
	handle  match.Handle
	order   uint64 // position among all receives posted so far
	inbound *inbound
	id      handshake.ID
	sendID  extended.ID
	// Call is set for a collective call, and message for a message of such a call. flow is set for a message that is
	// forwarded while it arrives.
	Call       *collective.Execution
	collective coll.Collective // of a call; still set after its end
	message    *collective.Message
	flow       *flow
	// placingPeer is the peer whose placement may refer to this receive, or nil.
	placingPeer *peer

	detached     bool // transfer continues without the caller
	dropsMessage bool // has no caller: its message is dropped
	MayRest      bool // a library may hand it over to the engine
	Awaited      bool // a caller sleeps until it completes
	// AwaitedElsewhere, if not nil, reports whether the process that the caller acts for sleeps until the request
	// completes.
	AwaitedElsewhere func() bool
	// restRef is the ref that identifies the send's record in RestingSends, or 0.
	restRef uint32

	// Done means that the request is complete, and that Status and Err are set.
	Done   bool
	Status Status
	Err    error
}

// words returns the size of the payload, or of the buffer, in words.
func (r *Request) words() uint32 { return uint32(len(r.buf) / protocol.WordLen) }

// Operation returns the operation that the request was posted for.
func (r *Request) Operation() Operation {
	return Operation{Kind: r.kind, Peer: r.peer, Tag: int(r.tag), Comm: r.comm, Buf: r.buf, Datatype: r.datatype}
}

func (r *Request) isSend() bool { return r.kind == OpSend || r.kind == OpSendSync }

// observes reports whether the core notifies the Observer of messages exchanged with p. If p is nil, it reports whether
// any peer is observed.
func (e *Core) observes(p *peer) bool { return e.observed && (p == nil || !p.cfg.Unobserved) }

// notifies reports whether the core notifies the Observer of the end of a request.
func (e *Core) notifies(r *Request) bool {
	p := r.p
	if s := r.Status.Peer; p == nil && s >= 0 && s < len(e.peers.list) {
		p = e.peers.at(s)
	}
	return e.observes(p)
}

// finish completes a request with the error err, which may be nil: it counts and records the end, and reports it to the
// Observer.
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
	// No caller waits for a resting send, because the engine owns it.
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
