package attach

import (
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// queues holds the unstarted sends and calls, in one queue for each peer. Sends to a peer are started in the order of
// their START frames, because the peer matches them in that order; each is started once its payload is complete. A peer
// that does not support communicators also matches the messages of collective calls in this order, so a call is queued
// for all such peers. Only the reading goroutine uses queues.
type queues struct {
	orderedPeers []int // peers that do not support communicators
	// byPeer contains a queue for each peer, followed by one queue for all operations with invalid ranks.
	byPeer [][]*operation
	// ready lists operations that have reached the front of all of their queues.
	ready []*operation
}

// hasPayload reports whether the whole payload of the operation has been received.
func (op *operation) hasPayload() bool { return op.payloadReceived == op.Length }

// indexes returns the indexes in byPeer of the queues that contain an operation.
func (q *queues) indexes(op *operation) []int {
	if op.Kind == wire.OpCall {
		return q.orderedPeers
	}
	op.queue[0] = op.Peer
	if none := len(q.byPeer) - 1; op.Peer < 0 || op.Peer > none {
		op.queue[0] = none
	}
	return op.queue[:]
}

// isFirst reports whether all queues that the operation would join are empty.
func (q *queues) isFirst(op *operation) bool {
	for _, i := range q.indexes(op) {
		if len(q.byPeer[i]) > 0 {
			return false
		}
	}
	return true
}

// add appends an operation to its queues.
func (q *queues) add(op *operation) {
	for _, i := range q.indexes(op) {
		if len(q.byPeer[i]) > 0 {
			op.queuesAhead++
		}
		q.byPeer[i] = append(q.byPeer[i], op)
	}
}

// remove removes an operation from its queues. Other operations may thereby reach the front of all of their queues;
// remove appends these to ready.
func (q *queues) remove(op *operation) {
	for _, i := range q.indexes(op) {
		at := slices.Index(q.byPeer[i], op)
		q.byPeer[i] = slices.Delete(q.byPeer[i], at, at+1)
		if at == 0 && len(q.byPeer[i]) > 0 {
			next := q.byPeer[i][0]
			if next.queuesAhead--; next.queuesAhead == 0 {
				q.ready = append(q.ready, next)
			}
		}
	}
}

// numAhead returns the number of operations ahead of op in the first queue that contains op.
func (q *queues) numAhead(op *operation) int { return slices.Index(q.byPeer[q.indexes(op)[0]], op) }

// missingPayload tracks the missing payload of sends and calls that ended early. The program may already be sending
// this payload, so the session discards the corresponding DATA frames. A DATA frame for any other unknown operation is
// a protocol violation. Only the reading goroutine uses missingPayload.
type missingPayload struct {
	// remaining maps an operation's id to the number of bytes that may still arrive.
	remaining map[uint64]uint64
	// overflowed is set once remaining would have to hold more than maxMissing operations. From then on, the session
	// discards all DATA frames for unknown operations.
	overflowed bool
}

// maxMissing is the maximum number of operations in a missingPayload. Without a limit, programs that never send the
// missing payload could exhaust memory.
const maxMissing = 1024

// add records an operation that ended before all of its payload was received.
func (u *missingPayload) add(id, bytes uint64) {
	switch {
	case bytes == 0 || u.overflowed:
	case len(u.remaining) == maxMissing:
		u.remaining, u.overflowed = nil, true
	default:
		if u.remaining == nil {
			u.remaining = make(map[uint64]uint64)
		}
		u.remaining[id] = bytes
	}
}

// discard accounts for received bytes and reports whether they were expected.
func (u *missingPayload) discard(id, bytes uint64) bool {
	left := u.remaining[id]
	switch {
	case u.overflowed:
	case bytes == 0 || bytes > left:
		return false
	case bytes == left:
		delete(u.remaining, id)
	default:
		u.remaining[id] = left - bytes
	}
	return true
}
