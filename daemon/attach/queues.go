package attach

import (
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// queues holds the sends to each peer, and the calls, that were not started yet. Sends to a peer are started in the
// order of their STARTs, which is the order in which they are matched, each when its payload is complete. With peers
// that do not know communicators, messages of collective calls match in the same order, so a call is in the queues of
// all these peers. Only the reading goroutine uses queues.
type queues struct {
	byOrder []int // peers that do not know communicators
	// of has the queue of each peer, and then the queue of all invalid ranks.
	of [][]*operation
	// ready lists operations that have become the first in all their queues.
	ready []*operation
}

// complete reports whether the whole payload has been received.
func (op *operation) complete() bool { return op.got == op.Length }

// places returns the indexes of the queues to which an operation belongs.
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

// add queues an operation.
func (q *queues) add(op *operation) {
	for _, i := range q.places(op) {
		if len(q.of[i]) > 0 {
			op.ahead++
		}
		q.of[i] = append(q.of[i], op)
	}
}

// remove removes an operation from its queues. Operations that become the first in all their queues are ready.
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

// before returns the number of sends to the same peer ahead of a send.
func (q *queues) before(op *operation) int { return slices.Index(q.of[q.places(op)[0]], op) }

// unsent records the missing payload of sends and calls that ended early: the program may be sending it already, so
// DATA of it is discarded. Any other DATA without an operation is a violation. Only the reading goroutine uses
// unsent.
type unsent struct {
	// left is the number of bytes that may still arrive, by the operation's id.
	left map[uint64]uint64
	// overflowed is set after too many such operations: then all such DATA is discarded.
	overflowed bool
}

// maxUnsent limits the operations in unsent, because programs need not send the rest.
const maxUnsent = 1024

// add records an operation that ended without some bytes of its payload.
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

// take accounts for received bytes, and returns false if none were expected.
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
