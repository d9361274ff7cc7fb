package attach

import (
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// queues holds the sends and calls that have not been started yet, with one queue for each peer. Sends to a
// peer are started in the order of their START frames, because that is the order in which the peer matches
// them; each is started once its payload is complete. A peer that does not know communicators also matches the
// messages of collective calls in this order, so a call is in the queues of all such peers. Only the reading
// goroutine uses queues.
type queues struct {
	byOrder []int // peers that do not know communicators
	// of contains a queue for each peer, followed by one queue for all invalid ranks.
	of [][]*operation
	// ready lists operations that have become first in all of their queues.
	ready []*operation
}

// complete reports whether the whole payload has been received.
func (op *operation) complete() bool { return op.got == op.Length }

// places returns the indexes of the queues that an operation belongs in.
func (q *queues) places(op *operation) []int {
	if op.Kind == wire.OpCall {
		return q.byOrder
	}
	op.queue[0] = op.Peer
	if none := len(q.of) - 1; op.Peer < 0 || op.Peer > none {
		op.queue[0] = none
	}
	return op.queue[:]
}

// first reports whether all queues of the operation are empty.
func (q *queues) first(op *operation) bool {
	for _, i := range q.places(op) {
		if len(q.of[i]) > 0 {
			return false
		}
	}
	return true
}

// add appends an operation to its queues.
func (q *queues) add(op *operation) {
	for _, i := range q.places(op) {
		if len(q.of[i]) > 0 {
			op.ahead++
		}
		q.of[i] = append(q.of[i], op)
	}
}

// remove removes an operation from its queues. Operations that thereby become first in all of their queues are
// added to ready.
func (q *queues) remove(op *operation) {
	for _, i := range q.places(op) {
		at := slices.Index(q.of[i], op)
		q.of[i] = slices.Delete(q.of[i], at, at+1)
		if at == 0 && len(q.of[i]) > 0 {
			next := q.of[i][0]
			if next.ahead--; next.ahead == 0 {
				q.ready = append(q.ready, next)
			}
		}
	}
}

// before returns the number of sends that are ahead of op in the queue of its peer.
func (q *queues) before(op *operation) int { return slices.Index(q.of[q.places(op)[0]], op) }

// unsent tracks the missing payload of sends and calls that ended early. The program may already be sending
// this payload, so the session discards the corresponding DATA frames. Any other DATA frame without an
// operation is a protocol violation. Only the reading goroutine uses unsent.
type unsent struct {
	// left maps an operation's id to the number of bytes that may still arrive.
	left map[uint64]uint64
	// overflowed is set once there have been too many such operations. From then on, all DATA without an
	// operation is discarded.
	overflowed bool
}

// maxUnsent is the maximum number of operations in unsent. A limit is needed because programs may never send
// the rest.
const maxUnsent = 1024

// add records an operation that ended while some bytes of its payload were missing.
func (u *unsent) add(id, bytes uint64) {
	switch {
	case bytes == 0 || u.overflowed:
	case len(u.left) == maxUnsent:
		u.left, u.overflowed = nil, true
	default:
		if u.left == nil {
			u.left = make(map[uint64]uint64)
		}
		u.left[id] = bytes
	}
}

// take accounts for received bytes. It returns false if the bytes were not expected.
func (u *unsent) take(id, bytes uint64) bool {
	left := u.left[id]
	switch {
	case u.overflowed:
	case bytes == 0 || bytes > left:
		return false
	case bytes == left:
		delete(u.left, id)
	default:
		u.left[id] = left - bytes
	}
	return true
}
