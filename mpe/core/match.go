package core

import (
	"errors"

	"github.com/zrlmpi/zrlmpid/mpe/match"
)

// matcher joins the receives and messages of one communicator.
type matcher = match.Matcher[*Request, unexpected]

// matchers has the matchers of all communicators.
type matchers struct {
	all map[uint32]*matcher
	// lastComm is the communicator that was used last, and last its matcher.
	lastComm uint32
	last     *matcher
	// limits bounds each; ownLimit is how many messages of its own a rank may have
	// unexpected in a communicator.
	limits   match.Limits
	ownLimit int
	// restAbove is the number of unexpected messages of a communicator above which they rest.
	restAbove int
}

// init takes the limits that are configured. Peers add to them.
func (m *matchers) init(limits match.Limits, ranks int) {
	if limits.Unexpected == 0 {
		limits.Unexpected = match.DefaultLimit
	}
	m.all = map[uint32]*matcher{}
	m.ownLimit, m.restAbove = limits.Unexpected, defaultRestAbove
	m.limits = limits
	m.limits.Unexpected += ranks
}

// of returns the communicator's, made when the first receive or message
// names it.
func (m *matchers) of(comm uint32) *matcher {
	if comm == m.lastComm && m.last != nil {
		return m.last
	}
	found := m.all[comm]
	if found == nil {
		found = match.New[*Request, unexpected](m.limits)
		m.all[comm] = found
	}
	m.lastComm, m.last = comm, found
	return found
}

// postRecv gives a receive the oldest message that fits, or queues it.
func (e *Core) postRecv(r *Request) error {
	m := e.matchers.of(r.comm)
	u, ok, h, err := m.Post(int32(r.peer), r.matchTag(), r)
	if errors.Is(err, match.ErrFull) {
		return ErrFull
	}
	r.order = m.PostOrder()
	if !ok {
		err := e.NoSender(r.peer, r.comm)
		if p := r.p; err == nil && p != nil && p.broken != nil {
			err, p.broken = p.broken, nil
		}
		if err != nil {
			m.CancelPosted(h)
			e.finish(r, err)
			return nil
		}
	}
	e.posted(r, &u, ok, h)
	return nil
}

func (e *Core) posted(r *Request, u *unexpected, ok bool, h match.Handle) {
	if !ok {
		r.handle = h
		return
	}
	in := u.in
	if in == nil {
		in = e.record(u, r.comm, e.matchers.of(r.comm).TakenOrder())
	}
	e.join(in, r)
	if p := in.p; p != nil && p.handshake != nil {
		p.handshake.perform(nil) // what this has brought about
	}
}

// repost queues a receive in its old place: the message that it was matched with
// does not exist.
func (e *Core) repost(r *Request) {
	e.inbounds.retire(r.in)
	r.in = nil
	u, ok, h, err := e.matchers.of(r.comm).Repost(int32(r.peer), r.matchTag(), r, r.order)
	if err != nil { // its room was taken by receives that were posted since
		e.finish(r, ErrFull)
		return
	}
	e.posted(r, &u, ok, h)
}

// matchTag is the tag that the matcher knows a receive by.
func (r *Request) matchTag() int32 {
	if r.tag != AnyTag && r.p.noTags() {
		return 0 // all of the peer's messages have it
	}
	return r.tag
}

// arrive has the posted receives matched with a message. Without one that fits it
// waits among the unexpected ones; the error is match.ErrFull if it cannot.
func (e *Core) arrive(in *inbound) error {
	if in.p != nil {
		in.p.broken, in.p.answered = nil, in.p.sendsDone
	}
	m := e.matchers.of(in.comm)
	r, ok, h, err := m.Arrive(int32(in.source), in.tag, unexpected{in: in})
	if err != nil {
		return err
	}
	in.order = m.Order()
	e.arrived(in, r, ok, h)
	return nil
}

// restore announces a message again whose receive was detached. It has its old
// place in the order.
func (e *Core) restore(in *inbound) {
	in.matchedBefore = true
	m := e.matchers.of(in.comm)
	r, ok, h, err := m.Restore(int32(in.source), in.tag, unexpected{in: in}, in.order)
	if err != nil {
		// Its own order is free, and its room was taken by messages that
		// came since.
		e.refused(in)
		return
	}
	e.arrived(in, r, ok, h)
}

func (e *Core) arrived(in *inbound, r *Request, ok bool, h match.Handle) {
	if ok {
		r.handle = match.Handle{}
		e.join(in, r)
		return
	}
	in.handle = h
	e.wakeProbes(in)
}

// join hands a message to the receive that it was matched with.
func (e *Core) join(in *inbound, r *Request) {
	in.handle = match.Handle{}
	switch {
	case in.local != nil:
		e.joinSelf(in, r)
	case in.p != nil:
		in.p.matched(in, r)
	default: // complete, from a receive that was detached
		e.takeOver(in, r)
		e.deliver(in)
	}
}

// refused reports that a message is lost for want of room.
func (e *Core) refused(in *inbound) {
	if in.p != nil {
		in.p.failed++
	}
	e.cfg.Observer.Done(e.rank, in.status(), ErrFull)
	e.forget(in)
}

// forget drops a message for which there is no receive and no room.
func (e *Core) forget(in *inbound) {
	if in.own {
		e.buffers.put(in.buf)
	}
	in.buf, in.own = nil, false
}
