package core

import (
	"fmt"
	"math"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Init initializes an empty request for an operation. The driver calls it during an event.
func (e *Core) Init(r *Request, op *Operation) {
	r.kind, r.peer, r.tag, r.comm = op.Kind, op.Peer, int32(op.Tag), op.Comm
	r.datatype, r.anyDatatype, r.buf = op.Datatype, op.AnyDatatype, op.Buf
	r.Status.Peer = op.Peer
	if op.Peer != AnySource {
		r.p = e.peers.at(op.Peer)
	}
}

// WillQueue reports whether a receive is certain to be queued, without being observed. If so, its event may reuse the
// time of the last event.
func (e *Core) WillQueue(r *Request) bool {
	return !e.observes(r.p) && e.matching.forComm(r.comm).Unexpected() == 0
}

// Refuse ends a request, with an error, before it is started.
func (e *Core) Refuse(r *Request, err error) { e.finish(r, err) }

// Post starts a request. If short is set, SendShort has already sent the message, and Post only completes the request.
// blocking is as in Operation.
func (e *Core) Post(request *Request, short, blocking bool) error {
	if short {
		e.finishShort(request)
		return nil
	}
	request.MayRest = e.RestingSends.mayRest(request)
	if err := e.startRequest(request, blocking); err != nil {
		return err
	}
	recordPosted(e, request)
	return nil
}

// startRequest starts a request. blocking has the same meaning as in Operation.
func (e *Core) startRequest(request *Request, blocking bool) (err error) {
	if e.state != running {
		return fmt.Errorf("rank %d: %w", e.rank, ErrClosed)
	}
	e.nextID++
	request.id, request.posted = e.nextID, e.now
	switch {
	case request.kind == OpRecv:
		if err = e.matching.postRecv(request); request.handle.Index() != 0 && e.IsQuiet() {
			return nil // queued; nothing else changed
		}
	case request.peer == e.rank:
		err = e.matching.sendSelf(request)
	default:
		if request.p.send(request, blocking) {
			return nil
		}
	}
	e.flush()
	if err != nil {
		return fmt.Errorf("rank %d: %w", e.rank, err)
	}
	return nil
}

// Check returns an error if the wire cannot carry an operation. It needs no lock.
func (e *Core) Check(op *Operation) error {
	if uint(op.Peer) < uint(len(e.peers.list)) && uint64(op.Tag) <= math.MaxInt32 {
		if of := e.peers.limits[op.Peer]; of != nil && len(op.Buf) <= of.uncheckedLen {
			return nil
		}
	}
	recv := op.Kind == OpRecv
	switch {
	case op.Peer == AnySource && recv:
	case op.Peer < 0 || op.Peer >= len(e.peers.list):
		return fmt.Errorf("rank %d: %w: the cluster has ranks 0 to %d", op.Peer, ErrRank, len(e.peers.list)-1)
	}
	if int64(op.Tag) > math.MaxInt32 || op.Tag < 0 && !(recv && op.Tag == AnyTag) {
		return fmt.Errorf("tag %d: %w: it is 0 to %d", op.Tag, ErrTag, math.MaxInt32)
	}
	switch {
	case op.Peer == AnySource:
		if e.noTags && op.Comm == 0 && op.Tag > 0 {
			return fmt.Errorf("tag %d: %w: name the source, or use a communicator without those peers", op.Tag,
				ErrWildcard)
		}
		return nil
	case op.Peer == e.rank:
		return nil
	}
	if of := e.peers.limits[op.Peer]; len(op.Buf) > of.uncheckedLen {
		return of.check(op)
	}
	return nil
}

// check returns an error if the peer's profile cannot carry an operation.
func (l *wireLimits) check(op *Operation) error {
	switch {
	case l.limits.NoComms && op.Comm != 0:
		return fmt.Errorf("rank %d: %w (%v): only the world reaches it", op.Peer, ErrComm, l.profile)
	case l.limits.Words && len(op.Buf)%protocol.WordLen != 0:
		return fmt.Errorf("%d bytes: %w: messages are counted in 32-bit words", len(op.Buf), ErrLength)
	case l.limits.SmallTags && op.Tag > 255:
		return fmt.Errorf("tag %d: %w: profile v0.9 carries 0 to 255", op.Tag, ErrTag)
	case int64(len(op.Buf)) > l.maxLength && op.Kind != OpRecv:
		return fmt.Errorf("%d bytes to rank %d: %w of %d bytes", len(op.Buf), op.Peer, handshake.ErrTooLong, l.maxLength)
	}
	return nil
}
