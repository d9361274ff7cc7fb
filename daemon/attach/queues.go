package attach

import (
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// queues have the sends to each peer, and the calls, that have not been started, and have not ended. Sends to a peer are
// started in the order of their STARTs, which is the order in which they are matched, each when its payload is complete.
// To and from peers that know no communicators, messages of collective calls meet by the same order, so a call is in the
// queues of all of them. Only the reading goroutine uses them.
type queues struct {
	byOrder []int // the peers that know no communicators
	// of are the queues of the peers, and the last one is of ranks that are none.
	of [][]*operation
	// ready are operations that have become the first everywhere.
	ready []*operation
}

// complete reports whether all of the payload has come.
func (op *operation) complete() bool { return op.got == op.Length }

// places returns in which queues an operation belongs.
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

// first reports whether there is no operation that this one must not overtake.
func (q *queues) first(op *operation) bool {
	for _, i := range q.places(op) {
		if len(q.of[i]) > 0 {
			return false
		}
	}
	return true
}

// add has an operation wait for its payload, or behind others.
func (q *queues) add(op *operation) {
	for _, i := range q.places(op) {
		if len(q.of[i]) > 0 {
			op.ahead++
		}
		q.of[i] = append(q.of[i], op)
	}
}

// remove takes an operation out. Those that become the first everywhere are ready.
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

// before is how many sends to its peer are before one.
func (q *queues) before(op *operation) int { return slices.Index(q.of[q.places(op)[0]], op) }

// unsent has the payload that sends and calls lacked when they ended: the program may have begun to send it, and what
// comes of it is discarded. Any other DATA without an operation is a violation. Only the reading goroutine uses it.
type unsent struct {
	// left is the number of bytes that may come, by the operation's number.
	left map[uint64]uint64
	// overflowed is set when there were too many of them: then any DATA is discarded.
	overflowed bool
}

// maxUnsent bounds the operations in unsent: a program need not send the rest.
const maxUnsent = 1024

// add notes an operation that has ended without some bytes of its payload.
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

// take accounts for bytes that have come, and reports false if none were to come.
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
