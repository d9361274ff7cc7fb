package core

import (
	"errors"

	"github.com/zrlmpi/zrlmpid/mpe/match"
)

// matcher matches the receives and messages of one communicator.
type matcher = match.Matcher[*Request, unexpected]

// matching matches receives and messages. It holds the matchers of all communicators and the records of arriving
// messages.
type matching struct {
	core      *Core
	inbounds  inboundPool
	lastClaim int32 // tag of the last claimed message

	matchers map[uint32]*matcher
	// lastComm is the most recently used communicator, and lastMatcher its matcher.
	lastComm    uint32
	lastMatcher *matcher
	// limits bounds the number of entries in each matcher. A rank cannot send itself another message while a
	// communicator contains more than selfLimit unexpected messages.
	limits    match.Limits
	selfLimit int
	// restThreshold is the number of unexpected messages in a communicator above which new ones are stored as digests.
	restThreshold int
}

// init sets the configured limits. New then raises the limit on unexpected messages by the peers' credit.
func (x *matching) init(limits match.Limits, ranks int) {
	if limits.Unexpected == 0 {
		limits.Unexpected = match.DefaultLimit
	}
	x.matchers = map[uint32]*matcher{}
	x.selfLimit, x.restThreshold = limits.Unexpected, defaultRestAbove
	x.limits = limits
	x.limits.Unexpected += ranks
}

// forComm returns the matcher of a communicator, which it creates on first use.
func (x *matching) forComm(comm uint32) *matcher {
	if comm == x.lastComm && x.lastMatcher != nil {
		return x.lastMatcher
	}
	found := x.matchers[comm]
	if found == nil {
		found = match.New[*Request, unexpected](x.limits)
		x.matchers[comm] = found
	}
	x.lastComm, x.lastMatcher = comm, found
	return found
}

// postRecv matches a receive with the oldest matching message, or queues the receive.
func (x *matching) postRecv(request *Request) error {
	m := x.forComm(request.comm)
	u, ok, handle, err := m.Post(int32(request.peer), request.matchTag(), request)
	if errors.Is(err, match.ErrFull) {
		return ErrFull
	}
	request.order = m.PostOrder()
	if !ok {
		err := x.core.CheckSender(request.peer, request.comm)
		if p := request.p; err == nil && p != nil && p.kernelErr != nil {
			err, p.kernelErr = p.kernelErr, nil
		}
		if err != nil {
			m.CancelPosted(handle)
			x.core.finish(request, err)
			return nil
		}
	}
	x.onPosted(request, &u, ok, handle)
	return nil
}

// onPosted continues a receive after the search for a message: u is the match if ok is set; otherwise, the receive was
// queued as h.
func (x *matching) onPosted(request *Request, u *unexpected, ok bool, h match.Handle) {
	if !ok {
		request.handle = h
		return
	}
	in := u.inbound
	if in == nil {
		in = x.wakeRecord(u, request.comm, x.forComm(request.comm).TakenOrder())
	}
	x.bindMessage(in, request)
	if p := in.p; p != nil && p.handshake != nil {
		p.handshake.perform(nil) // the actions of the match
	}
}

// repost puts a receive back at its old position in the queue, because the message that it matched turned out not to
// exist.
func (x *matching) repost(request *Request) {
	x.inbounds.retire(request.inbound)
	request.inbound = nil
	u, ok, h, err := x.forComm(request.comm).Repost(int32(request.peer), request.matchTag(), request, request.order)
	if err != nil { // receives posted since have filled the queue
		x.core.finish(request, ErrFull)
		return
	}
	x.onPosted(request, &u, ok, h)
}

// matchTag returns the tag that a receive matches. It is 0 for peers whose messages carry no tag.
func (r *Request) matchTag() int32 {
	if r.tag != AnyTag && r.p.noTags() {
		return 0 // the tag of all messages of the peer
	}
	return r.tag
}

// arrive matches a message with the posted receives, or queues it as an unexpected message. The error is match.ErrFull
// if that queue is full.
func (x *matching) arrive(in *inbound) error {
	if in.p != nil {
		in.p.kernelErr, in.p.sendsAtAnswer = nil, in.p.sendsDone
	}
	m := x.forComm(in.comm)
	r, ok, h, err := m.Arrive(int32(in.source), in.tag, unexpected{inbound: in})
	if err != nil {
		return err
	}
	in.order = m.Order()
	x.onArrived(in, r, ok, h)
	return nil
}

// restore offers a message to other receives after the receive that it matched was detached. The message keeps its
// position in the order of arrival.
func (x *matching) restore(in *inbound) {
	in.matchedBefore = true
	m := x.forComm(in.comm)
	request, ok, handle, err := m.Restore(int32(in.source), in.tag, unexpected{inbound: in}, in.order)
	if err != nil {
		// Later messages have filled the queue in the meantime.
		x.rejectFull(in)
		return
	}
	x.onArrived(in, request, ok, handle)
}

// onArrived continues a message after the search for a receive: r is the match if ok is set; otherwise, the message was
// queued as handle.
func (x *matching) onArrived(in *inbound, r *Request, ok bool, handle match.Handle) {
	if ok {
		r.handle = match.Handle{}
		x.bindMessage(in, r)
		return
	}
	in.handle = handle
	x.core.Probes.wake(in)
}

// bindMessage hands a message to its matching receive.
func (x *matching) bindMessage(in *inbound, request *Request) {
	in.handle = match.Handle{}
	switch {
	case in.local != nil:
		x.bindSelf(in, request)
	case in.p != nil:
		in.p.matched(in, request)
	default: // a complete message whose receive was detached
		x.setDestination(in, request)
		x.deliver(in)
	}
}

// rejectFull drops a message because the queue is full, and reports the loss.
func (x *matching) rejectFull(in *inbound) {
	if in.p != nil {
		in.p.failed++
	}
	x.core.cfg.Observer.Done(x.core.rank, in.status(), ErrFull)
	x.dropMessage(in)
}

// dropMessage frees the buffer of a message, if the engine owns it.
func (x *matching) dropMessage(in *inbound) {
	if in.ownsBuf {
		x.core.buffers.put(in.buf)
	}
	in.buf, in.ownsBuf = nil, false
}
