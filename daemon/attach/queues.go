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
	orderedPeers []int // peers that do not know communicators
	// byPeer contains a queue for each peer, followed by one queue for all invalid ranks.
	byPeer [][]*operation
	// ready lists operations that have become first in all of their queues.
	ready []*operation
}

// hasPayload reports whether the whole payload has been received.
func (op *operation) hasPayload() bool { return op.payloadReceived == op.Length }

// indexes returns the indexes of the queues that an operation belongs in.
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

// isFirst reports whether all queues of the operation are empty.
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

// remove removes an operation from its queues. Operations that thereby become first in all of their queues are
// added to ready.
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

// numAhead returns the number of sends that are ahead of op in the queue of its peer.
func (q *queues) numAhead(op *operation) int { return slices.Index(q.byPeer[q.indexes(op)[0]], op) }

// missingPayload tracks the missing payload of sends and calls that ended early. The program may already be sending
// this payload, so the session discards the corresponding DATA frames. Any other DATA frame without an operation is a
// protocol violation. Only the reading goroutine uses missingPayload.
type missingPayload struct {
	// remaining maps an operation's id to the number of bytes that may still arrive.
	remaining map[uint64]uint64
	// overflowed is set once there have been too many such operations. From then on, all DATA without an
	// operation is discarded.
	overflowed bool
}

// maxMissing is the maximum number of operations in a missingPayload. A limit is needed because programs may never send
// the rest.
const maxMissing = 1024

// add records an operation that ended while some bytes of its payload were missing.
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

// discard accounts for received bytes. It returns false if the bytes were not expected.
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
