package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// inbound is a message of the peer, from Open until it is both accepted and complete, or lost.
type inbound struct {
	number    uint32
	comm, tag uint32
	datatype  protocol.Datatype
	eager     bool
	accepted  bool
	asked     bool // the peer asked to cancel it
	returned  bool // its eager credit was returned before Accept
	length    int64
	// take is the number of bytes to receive, got the number received.
	take, got     int64
	room          int64 // valid once accepted
	since         Instant
	before, after *inbound
}

func (m *inbound) complete() bool { return (m.eager || m.accepted) && m.got == m.take }

// receiving is the receiver's half: the messages of the peer, and the limits sent to it.
type receiving struct {
	*common
	first, last *inbound                // in the order of their numbers
	byNumber    index[uint32, *inbound] // all but the newest
	newest      *inbound                // the one opened last, if it is still open
	resting     *resting                // messages whose other state the caller keeps; nil before the first one
	held        held
	asked       []uint32 // numbers of messages that the peer cancels, until Flush
	epoch       uint32   // counts pairs of sessions, so that Messages are unique
	expected    uint32   // number of the message that begins next
	floor       uint32   // no earlier message is open
	waiting     int32    // messages that are accepted and not complete

	// matched is the number of messages that were matched with a receive or no longer exist, and matchedBytes the
	// number of bytes of the eager ones among them. eager is the number of bytes of all eager messages begun (E20).
	matched, matchedBytes, eager uint32
	// advertisedLimit and advertisedEager are the limits that were last sent to the peer.
	advertisedLimit, advertisedEager uint32
	firstMessage                     uint32
	// window is the number of messages that the peer may have without a receive.
	window  uint32
	offered bool // the packet being handled was passed to PacketAdvertised
	free    *inbound
}

func (r *receiving) reset() {
	first := r.cfg.firstMessage
	if r.cfg.Room != nil && r.window > 0 {
		r.cfg.Room.granted -= int(r.window) - r.cfg.Messages
	}
	for m := r.first; m != nil; {
		next := m.after
		*m = inbound{after: r.free}
		r.free = m
		m = next
	}
	r.held.reset()
	*r = receiving{
		common: r.common, epoch: r.epoch + 1, held: r.held, asked: r.asked[:0], free: r.free,
		expected: first, floor: first, firstMessage: first, window: uint32(r.cfg.Messages),
	}
}

// limits returns the limits of the peer (E20). They keep the numbers of open messages comparable (E4).
func (r *receiving) limits() (messages, eager uint32) {
	messages = r.firstMessage + r.window + r.matched
	if int32(messages-r.floor) > maxMessages {
		messages = r.floor + maxMessages
	}
	return messages, uint32(r.cfg.EagerBytes) + r.matchedBytes
}

// floorStep is the maximum advance of raiseFloor: more messages than can begin between two calls.
const floorStep = 1 << 10

// raiseFloor moves floor to the oldest open message, or closer to it.
func (r *receiving) raiseFloor() {
	if r.open() == 0 {
		r.floor = r.expected
		return
	}
	for range floorStep {
		if r.find(r.floor) != nil || r.resting.get(r.floor) != 0 {
			return
		}
		r.floor++
	}
}

// find returns the open message of a number, or nil if there is none or if it rests.
func (r *receiving) find(number uint32) *inbound {
	if m := r.newest; m != nil && m.number == number {
		return m
	}
	return r.byNumber.get(number)
}

// open returns the number of open messages.
func (r *receiving) open() int {
	n := int(r.byNumber.count) + r.resting.len()
	if r.newest != nil {
		n++
	}
	return n
}

// take returns a zeroed message.
func (r *receiving) take() *inbound {
	m := r.free
	if m == nil {
		return new(inbound)
	}
	r.free, m.after = m.after, nil
	return m
}

// enter inserts a message that was opened before into its place in the order.
func (r *receiving) enter(m *inbound) {
	m.before = r.last
	for m.before != nil && int32(m.before.number-m.number) > 0 {
		m.before = m.before.before
	}
	if m.before == nil {
		m.after, r.first = r.first, m
	} else {
		m.after, m.before.after = m.before.after, m
	}
	if m.after == nil {
		r.last = m
	} else {
		m.after.before = m
	}
	r.byNumber.put(m.number, m)
}

// creditDue reports whether the new limits must be sent to the peer (E22). They are sent sooner if it has little credit
// left.
func (r *receiving) creditDue() bool {
	messages, eager := r.limits()
	quarter := max(r.cfg.Messages/4, 1)
	due := quarter
	if int(int32(r.advertisedLimit-r.expected)) < quarter {
		due = max(r.cfg.Messages/64, 1)
	}
	return int(messages-r.advertisedLimit) >= due || int(eager-r.advertisedEager) >= max(r.cfg.EagerBytes/4, 1)
}

// close removes a message and recycles it.
func (r *receiving) close(m *inbound) {
	if m == r.newest {
		r.newest = nil
	} else {
		r.byNumber.remove(m.number)
	}
	if m.before == nil {
		r.first = m.after
	} else {
		m.before.after = m.after
	}
	if m.after == nil {
		r.last = m.before
	} else {
		m.after.before = m.before
	}
	*m = inbound{}
	m.after, r.free = r.free, m
}
