package match

// Matcher holds the PRQ and the UMQ of a communicator. R is the type of the caller's receives, and M the type of its
// messages; both are usually pointers. A Matcher does not retain removed entries. It is not safe for concurrent use.
type Matcher[R, M any] struct {
	receives    store[R]
	messages    store[M]
	clock       uint64 // last number assigned to an entry
	lastArrival uint64 // last number assigned to a message
	lastPosting uint64 // last number assigned to a receive
	lastTaken   uint64 // number of the queued message that a receive matched last
	// prqFull and umqFull are allocated in advance, so that rejecting an entry allocates nothing.
	prqFull  *FullError
	umqFull  *FullError
	prq, umq queue
}

// New returns a Matcher with empty queues.
func New[R, M any](l Limits) *Matcher[R, M] {
	m := &Matcher[R, M]{}
	m.prq.init(limit(l.Posted))
	m.umq.init(limit(l.Unexpected))
	m.prqFull = &FullError{Queue: Posted, Limit: m.prq.limit}
	m.umqFull = &FullError{Queue: Unexpected, Limit: m.umq.limit}
	return m
}

// Post posts a receive for a message from source with tag; either may be a wildcard. If unexpected messages match, Post
// removes the oldest from the UMQ and returns it, with ok = true and a zero handle. Otherwise Post queues the receive
// and returns its handle. If the PRQ is at its limit, or source or tag is below -1, Post queues nothing and returns a
// *FullError or a *KeyError. PostOrder then returns the position of the receive, for Repost.
func (m *Matcher[R, M]) Post(source, tag int32, r R) (msg M, ok bool, handle Handle, err error) {
	if source < AnySource || tag < AnyTag {
		return msg, false, handle, &KeyError{Queue: Posted, Source: source, Tag: tag}
	}
	m.clock++
	m.lastPosting = m.clock
	key := makeKey(source, tag)
	if m.umq.length != 0 {
		if f := m.umq.findMessage(key); f.i != 0 {
			return m.takeMessage(f), true, handle, nil
		}
	}
	if m.prq.length >= m.prq.limit {
		return msg, false, handle, m.prqFull
	}
	i := m.prq.push(key, m.clock, 0)
	m.receives.put(i, r)
	return msg, false, Handle{seq: m.clock, index: i}, nil
}

// PostOrder returns the position of the last receive among all posted receives, whether it matched or was queued, or 0
// before the first Post.
func (m *Matcher[R, M]) PostOrder() uint64 { return m.lastPosting }

// Repost is Post for a receive whose matching message turned out not to exist. order must be the result of PostOrder
// after the receive's Post: if Repost queues the receive, the receive regains this position, before all receives posted
// later. In addition to the errors of Post, Repost may return an *OrderError. It takes time linear in the number of
// younger queued receives, and does not change PostOrder.
func (m *Matcher[R, M]) Repost(source, tag int32, r R, order uint64) (msg M, ok bool, handle Handle, err error) {
	if source < AnySource || tag < AnyTag {
		return msg, false, handle, &KeyError{Queue: Posted, Source: source, Tag: tag}
	}
	if order == 0 || order > m.lastPosting {
		return msg, false, handle, &OrderError{Queue: Posted, Order: order, Last: m.lastPosting}
	}
	key := makeKey(source, tag)
	if m.umq.length != 0 {
		if f := m.umq.findMessage(key); f.i != 0 {
			return m.takeMessage(f), true, handle, nil
		}
	}
	if m.prq.length >= m.prq.limit {
		return msg, false, handle, m.prqFull
	}
	if handle = m.prq.restore(key, order); handle.index == 0 {
		return msg, false, handle, &OrderError{Queue: Posted, Order: order, Last: m.lastPosting}
	}
	m.receives.put(handle.index, r)
	return msg, false, handle, nil
}

// Arrive matches an arrived message from source with tag. If posted receives match, Arrive removes the oldest from the
// PRQ and returns it, with ok = true and a zero handle. Otherwise Arrive queues the message and returns its handle. If
// the UMQ is at its limit, or source or tag is negative, Arrive queues nothing and returns a *FullError or a *KeyError.
// Order then returns the position of the message, for Restore.
func (m *Matcher[R, M]) Arrive(source, tag int32, msg M) (r R, ok bool, handle Handle, err error) {
	if source < 0 || tag < 0 {
		return r, false, handle, &KeyError{Queue: Unexpected, Source: source, Tag: tag}
	}
	m.clock++
	m.lastArrival = m.clock
	key := makeKey(source, tag)
	if r, ok = m.matchPosted(key); ok {
		return r, true, handle, nil
	}
	if m.umq.length >= m.umq.limit {
		return r, false, handle, m.umqFull
	}
	i := m.umq.push(key, m.clock, 0)
	m.messages.put(i, msg)
	return r, false, Handle{seq: m.clock, index: i}, nil
}

// Match is Arrive without queueing: if no receive matches the message, it returns ok = false.
func (m *Matcher[R, M]) Match(source, tag int32) (r R, ok bool) {
	if source < 0 || tag < 0 {
		return r, false
	}
	return m.matchPosted(makeKey(source, tag))
}

// Order returns the position of the last message among all arrived messages, whether it matched or was queued, or 0
// before the first Arrive.
func (m *Matcher[R, M]) Order() uint64 { return m.lastArrival }

// TakenOrder returns the position, among all arrived messages, of the queued message that Post or Repost returned last,
// or 0 if they have returned none.
func (m *Matcher[R, M]) TakenOrder() uint64 { return m.lastTaken }

// Restore is Arrive for a message whose matching receive was detached. order must be the result of Order after the
// message's Arrive: if Restore queues the message, the message regains this position, before all messages that arrived
// later. In addition to the errors of Arrive, Restore may return an *OrderError. It takes time linear in the number of
// younger queued messages, and does not change Order.
func (m *Matcher[R, M]) Restore(source, tag int32, msg M, order uint64) (r R, ok bool, handle Handle, err error) {
	if source < 0 || tag < 0 {
		return r, false, handle, &KeyError{Queue: Unexpected, Source: source, Tag: tag}
	}
	if order == 0 || order > m.lastArrival {
		return r, false, handle, &OrderError{Queue: Unexpected, Order: order, Last: m.lastArrival}
	}
	key := makeKey(source, tag)
	if r, ok = m.matchPosted(key); ok {
		return r, true, handle, nil
	}
	if m.umq.length >= m.umq.limit {
		return r, false, handle, m.umqFull
	}
	if handle = m.umq.restore(key, order); handle.index == 0 {
		return r, false, handle, &OrderError{Queue: Unexpected, Order: order, Last: m.lastArrival}
	}
	m.messages.put(handle.index, msg)
	return r, false, handle, nil
}

// CancelPosted removes a receive from the PRQ. It reports false if the receive is no longer queued, for instance
// because it has matched.
func (m *Matcher[R, M]) CancelPosted(h Handle) (r R, ok bool) {
	i := m.prq.lookup(h)
	if i == 0 {
		return r, false
	}
	m.prq.remove(i)
	return m.receives.take(i), true
}

// RemoveUnexpected removes a message from the UMQ without a receive. It reports false if the message is no longer
// queued.
func (m *Matcher[R, M]) RemoveUnexpected(h Handle) (msg M, ok bool) {
	i := m.umq.lookup(h)
	if i == 0 {
		return msg, false
	}
	m.umq.remove(i)
	return m.messages.take(i), true
}

// Replace replaces the stored value of a queued message. It reports false if the message is no longer queued.
func (m *Matcher[R, M]) Replace(h Handle, msg M) bool {
	i := m.umq.lookup(h)
	if i == 0 {
		return false
	}
	*m.messages.slot(i) = msg
	return true
}

// UnexpectedAt returns the queued message with the given Handle.Index, and its handle. It reports false if there is no
// such message.
func (m *Matcher[R, M]) UnexpectedAt(index uint32) (msg M, h Handle, ok bool) {
	if index == 0 || index > m.umq.lastIndex || m.umq.nodeAt(index).seq == 0 {
		return msg, h, false
	}
	return *m.messages.slot(index), Handle{seq: m.umq.nodeAt(index).seq, index: index, gen: m.umq.cold(index).gen}, true
}

// DeleteUnexpected calls del for each message in the UMQ, oldest first, and removes the message if del returns true.
// del must not call methods that change the queues.
func (m *Matcher[R, M]) DeleteUnexpected(del func(msg M) bool) {
	for i := m.umq.oldest(); i != 0; {
		younger := m.umq.nodeAt(i).younger
		if del(*m.messages.slot(i)) {
			m.umq.remove(i)
			m.messages.take(i)
		}
		i = younger
	}
}

// Probe returns the unexpected message that a receive from source with tag would match, and leaves it queued. No
// message matches a source or tag below -1.
func (m *Matcher[R, M]) Probe(source, tag int32) (msg M, ok bool) {
	if f := m.probe(source, tag); f.i != 0 {
		return *m.messages.slot(f.i), true
	}
	return msg, false
}

// ProbeHandle is like Probe, but also returns the message's handle.
func (m *Matcher[R, M]) ProbeHandle(source, tag int32) (msg M, h Handle, ok bool) {
	f := m.probe(source, tag)
	if f.i == 0 {
		return msg, h, false
	}
	return m.UnexpectedAt(f.i)
}

// probe returns the message that a receive would match, or a head with index 0.
func (m *Matcher[R, M]) probe(source, tag int32) (f head) {
	if source < AnySource || tag < AnyTag || m.umq.length == 0 {
		return f
	}
	return m.umq.findMessage(makeKey(source, tag))
}

// matchPosted removes the oldest matching receive of a message from the PRQ, and returns it.
func (m *Matcher[R, M]) matchPosted(key uint64) (r R, ok bool) {
	var f head
	switch {
	case m.prq.length == 0:
		return r, false
	case m.prq.isExact():
		f = m.prq.find(key)
	default:
		f = m.prq.findReceive(key)
	}
	if f.i == 0 {
		return r, false
	}
	m.prq.take(f)
	return m.receives.take(f.i), true
}

// takeMessage removes a message from the UMQ. Its number remains available as TakenOrder until the next one is removed.
func (m *Matcher[R, M]) takeMessage(f head) M {
	m.lastTaken = f.n.seq
	m.umq.take(f)
	return m.messages.take(f.i)
}

// Posted returns the number of receives in the PRQ.
func (m *Matcher[R, M]) Posted() int { return m.prq.length }

// Unexpected returns the number of messages in the UMQ.
func (m *Matcher[R, M]) Unexpected() int { return m.umq.length }

// EachPosted calls yield for each receive in the PRQ, oldest first, until yield returns false. yield must not call
// methods that change the queues.
func (m *Matcher[R, M]) EachPosted(yield func(source, tag int32, r R) bool) {
	each(&m.prq, &m.receives, yield)
}

// EachUnexpected calls yield for each message in the UMQ, oldest first, until yield returns false. yield must not call
// methods that change the queues.
func (m *Matcher[R, M]) EachUnexpected(yield func(source, tag int32, msg M) bool) {
	each(&m.umq, &m.messages, yield)
}

func each[T any](q *queue, s *store[T], yield func(source, tag int32, item T) bool) {
	for i := q.oldest(); i != 0; i = q.nodeAt(i).younger {
		source, tag := splitKey(q.nodeAt(i).key)
		if !yield(source, tag, *s.slot(i)) {
			return
		}
	}
}
