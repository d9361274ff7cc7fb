package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// inbound is a message from the peer. It exists from Open until it has been both accepted and fully received, or until
// it is lost.
type inbound struct {
	number          uint32
	comm, tag       uint32
	datatype        protocol.Datatype
	eager           bool
	accepted        bool
	cancelRequested bool // the peer has asked to cancel it
	creditReturned  bool // its eager credit was returned to the peer before Accept
	length          int64
	// expectedBytes is the number of bytes to receive, and receivedBytes the number received so far.
	expectedBytes, receivedBytes int64
	capacity                     int64 // valid once accepted
	openedAt                     Instant
	prev, next                   *inbound
}

func (m *inbound) isComplete() bool {
	return (m.eager || m.accepted) && m.receivedBytes == m.expectedBytes
}

// receiving is the receiving half of a Conn: the messages from the peer, and the limits sent to it.
type receiving struct {
	*common
	first, last    *inbound                // in the order of their numbers
	byNumber       index[uint32, *inbound] // all except newest
	newest         *inbound                // the last message opened; nil once it is closed
	resting        *resting                // messages whose other state the caller keeps; nil before the first one
	heldPackets    heldPackets
	cancelRequests []uint32 // numbers of messages that the peer has asked to cancel since the last Flush
	epoch          uint32   // counts pairs of sessions, so that Messages are unique
	nextMessage    uint32   // number of the next message to begin
	floor          uint32   // no message with a lower number is open
	acceptedOpen   int32    // number of accepted, incomplete messages

	// matched is the number of messages that were matched with a receive or no longer exist. matchedBytes is the total
	// length of the eager ones among them, and eagerBytes the total length of all eager messages that have begun (E20).
	matched, matchedBytes, eagerBytes uint32
	// advertisedLimit and advertisedEager are the limits on messages and on eager bytes that were last sent to the
	// peer.
	advertisedLimit, advertisedEager uint32
	firstMessage                     uint32
	// messageWindow is the number of messages that the peer may send before receives match them.
	messageWindow uint32
	offered       bool // the packet being handled was passed to PacketAdvertised
	free          *inbound
}

// reset forgets the messages of the session that ended, and returns its additional credit to the pool. The epoch
// changes, so that the caller's old Message values match no later message.
func (r *receiving) reset() {
	first := r.cfg.firstMessage
	if r.cfg.CreditPool != nil && r.messageWindow > 0 {
		r.cfg.CreditPool.granted -= int(r.messageWindow) - r.cfg.Messages
	}
	for m := r.first; m != nil; {
		next := m.next
		*m = inbound{next: r.free}
		r.free = m
		m = next
	}
	r.heldPackets.reset()
	*r = receiving{
		common: r.common, epoch: r.epoch + 1, heldPackets: r.heldPackets, cancelRequests: r.cancelRequests[:0], free: r.free,
		nextMessage: first, floor: first, firstMessage: first, messageWindow: uint32(r.cfg.Messages),
	}
}

// limits returns the current limits for the peer (E20). It bounds the distance between the numbers of open messages, so
// that they can be compared modulo 2³² (E4).
func (r *receiving) limits() (messages, eager uint32) {
	messages = r.firstMessage + r.messageWindow + r.matched
	if int32(messages-r.floor) > maxMessages {
		messages = r.floor + maxMessages
	}
	return messages, uint32(r.cfg.EagerBytes) + r.matchedBytes
}

// floorStep limits how far one call of raiseFloor advances the field floor. At most this many messages begin between
// two calls, so floor keeps up.
const floorStep = 1 << 10

// raiseFloor advances the field floor, a lower bound for the numbers of open messages, toward the oldest open message.
// One call advances it by at most floorStep.
func (r *receiving) raiseFloor() {
	if r.numOpen() == 0 {
		r.floor = r.nextMessage
		return
	}
	for range floorStep {
		if r.find(r.floor) != nil || r.resting.get(r.floor) != 0 {
			return
		}
		r.floor++
	}
}

// find returns the open message with the given number. For an unknown or resting message, it returns nil.
func (r *receiving) find(number uint32) *inbound {
	if m := r.newest; m != nil && m.number == number {
		return m
	}
	return r.byNumber.get(number)
}

// numOpen returns the number of open messages.
func (r *receiving) numOpen() int {
	n := int(r.byNumber.count) + r.resting.len()
	if r.newest != nil {
		n++
	}
	return n
}

// allocate returns a zeroed message.
func (r *receiving) allocate() *inbound {
	m := r.free
	if m == nil {
		return new(inbound)
	}
	r.free, m.next = m.next, nil
	return m
}

// insert inserts a message that was opened earlier, in the order of the numbers.
func (r *receiving) insert(message *inbound) {
	message.prev = r.last
	for message.prev != nil && int32(message.prev.number-message.number) > 0 {
		message.prev = message.prev.prev
	}
	if message.prev == nil {
		message.next, r.first = r.first, message
	} else {
		message.next, message.prev.next = message.prev.next, message
	}
	if message.next == nil {
		r.last = message
	} else {
		message.next.prev = message
	}
	r.byNumber.put(message.number, message)
}

// creditDue reports whether the limits have grown enough that the peer must be informed (E22). A smaller growth
// suffices if the peer has little credit left.
func (r *receiving) creditDue() bool {
	messages, eager := r.limits()
	quarter := max(r.cfg.Messages/4, 1)
	due := quarter
	if int(int32(r.advertisedLimit-r.nextMessage)) < quarter {
		due = max(r.cfg.Messages/64, 1)
	}
	return int(messages-r.advertisedLimit) >= due || int(eager-r.advertisedEager) >= max(r.cfg.EagerBytes/4, 1)
}

// close removes a message and recycles it.
func (r *receiving) close(message *inbound) {
	if message == r.newest {
		r.newest = nil
	} else {
		r.byNumber.remove(message.number)
	}
	if message.prev == nil {
		r.first = message.next
	} else {
		message.prev.next = message.next
	}
	if message.next == nil {
		r.last = message.prev
	} else {
		message.next.prev = message.prev
	}
	*message = inbound{}
	message.next, r.free = r.free, message
}
