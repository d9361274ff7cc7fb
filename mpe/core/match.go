package core

import (
	"errors"

	"github.com/zrlmpi/zrlmpid/mpe/match"
)

// matcher matches the receives and messages of one communicator.
type matcher = match.Matcher[*Request, unexpected]

// matching matches receives and messages. It holds the matchers of all communicators, and the records of
// arriving messages.
type matching struct {
	c        *Core
	inbounds inboundPool
	claims   int32 // tag of the last claimed message

	all map[uint32]*matcher
	// lastComm is the most recently used communicator, and last is its matcher.
	lastComm uint32
	last     *matcher
	// limits bounds each matcher. ownLimit is the number of unexpected messages in a communicator above which the
	// rank can send itself no more messages.
	limits   match.Limits
	ownLimit int
	// restAbove is the number of unexpected messages in a communicator above which further messages rest.
	restAbove int
}

// init sets the configured limits, which New then increases for the peers.
func (x *matching) init(limits match.Limits, ranks int) {
	if limits.Unexpected == 0 {
		limits.Unexpected = match.DefaultLimit
	}
	x.all = map[uint32]*matcher{}
	x.ownLimit, x.restAbove = limits.Unexpected, defaultRestAbove
	x.limits = limits
	x.limits.Unexpected += ranks
}

// of returns the matcher of a communicator. It creates the matcher for the first receive or message.
func (x *matching) of(comm uint32) *matcher {
	if comm == x.lastComm && x.last != nil {
		return x.last
	}
	found := x.all[comm]
	if found == nil {
		found = match.New[*Request, unexpected](x.limits)
		x.all[comm] = found
	}
	x.lastComm, x.last = comm, found
	return found
}

// postRecv matches a receive with the oldest message that fits, or queues it.
func (x *matching) postRecv(r *Request) error {
	m := x.of(r.comm)
	u, ok, h, err := m.Post(int32(r.peer), r.matchTag(), r)
	if errors.Is(err, match.ErrFull) {
		return ErrFull
	}
	r.order = m.PostOrder()
	if !ok {
		err := x.c.NoSender(r.peer, r.comm)
		if p := r.p; err == nil && p != nil && p.broken != nil {
			err, p.broken = p.broken, nil
		}
		if err != nil {
			m.CancelPosted(h)
			x.c.finish(r, err)
			return nil
		}
	}
	x.posted(r, &u, ok, h)
	return nil
}

func (x *matching) posted(r *Request, u *unexpected, ok bool, h match.Handle) {
	if !ok {
		r.handle = h
		return
	}
	in := u.in
	if in == nil {
		in = x.record(u, r.comm, x.of(r.comm).TakenOrder())
	}
	x.join(in, r)
	if p := in.p; p != nil && p.handshake != nil {
		p.handshake.perform(nil) // the actions of the match
	}
}

// repost returns a receive to its old position in the queue after its message turned out not to exist.
func (x *matching) repost(r *Request) {
	x.inbounds.retire(r.in)
	r.in = nil
	u, ok, h, err := x.of(r.comm).Repost(int32(r.peer), r.matchTag(), r, r.order)
	if err != nil { // receives posted since have filled the queue
		x.c.finish(r, ErrFull)
		return
	}
	x.posted(r, &u, ok, h)
}

// matchTag returns the tag under which the matcher files a receive.
func (r *Request) matchTag() int32 {
	if r.tag != AnyTag && r.p.noTags() {
		return 0 // the tag of all messages of the peer
	}
	return r.tag
}

// arrive matches a message with the posted receives. If none matches, the message becomes an unexpected message;
// the error is match.ErrFull if there are too many.
func (x *matching) arrive(in *inbound) error {
	if in.p != nil {
		in.p.broken, in.p.answered = nil, in.p.sendsDone
	}
	m := x.of(in.comm)
	r, ok, h, err := m.Arrive(int32(in.source), in.tag, unexpected{in: in})
	if err != nil {
		return err
	}
	in.order = m.Order()
	x.arrived(in, r, ok, h)
	return nil
}

// restore announces a message again after its receive was detached. The message keeps its position in the order of
// arrival.
func (x *matching) restore(in *inbound) {
	in.matchedBefore = true
	m := x.of(in.comm)
	r, ok, h, err := m.Restore(int32(in.source), in.tag, unexpected{in: in}, in.order)
	if err != nil {
		// Its position is free, but messages that arrived since have filled the queue.
		x.refused(in)
		return
	}
	x.arrived(in, r, ok, h)
}

func (x *matching) arrived(in *inbound, r *Request, ok bool, h match.Handle) {
	if ok {
		r.handle = match.Handle{}
		x.join(in, r)
		return
	}
	in.handle = h
	x.c.Probes.wake(in)
}

// join hands a message to its matching receive.
func (x *matching) join(in *inbound, r *Request) {
	in.handle = match.Handle{}
	switch {
	case in.local != nil:
		x.joinSelf(in, r)
	case in.p != nil:
		in.p.matched(in, r)
	default: // complete; its receive was detached
		x.takeOver(in, r)
		x.deliver(in)
	}
}

// refused reports that a message is lost because the queue is full.
func (x *matching) refused(in *inbound) {
	if in.p != nil {
		in.p.failed++
	}
	x.c.cfg.Observer.Done(x.c.rank, in.status(), ErrFull)
	x.forget(in)
}

// forget drops a message that can be neither matched nor queued.
func (x *matching) forget(in *inbound) {
	if in.own {
		x.c.buffers.put(in.buf)
	}
	in.buf, in.own = nil, false
}
