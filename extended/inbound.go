package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// inbound is a message of the peer's, from Open until it has been accepted and
// has arrived, or is lost.
type inbound struct {
	number    uint32
	comm, tag uint32
	datatype  protocol.Datatype
	eager     bool
	accepted  bool
	asked     bool // to be canceled
	returned  bool // its eager credit was returned before it is accepted
	length    int64
	// take is how many bytes are to come, got how many have.
	take, got     int64
	room          int64 // once it is accepted
	since         Instant
	before, after *inbound
}

func (m *inbound) complete() bool { return (m.eager || m.accepted) && m.got == m.take }

// receiving is the receiver's half: the messages of the peer, and the limits that it is sent.
type receiving struct {
	*common
	first, last *inbound                // in the order of their numbers
	byNumber    index[uint32, *inbound] // all but the newest
	newest      *inbound                // the one that was opened last, if it is still open
	resting     *resting                // nil before the first: those of which the caller keeps all else
	held        held
	asked       []uint32 // numbers of those that the peer cancels, until Flush
	epoch       uint32   // counts pairs of sessions, so that Messages differ
	expected    uint32   // number of the message that begins next
	floor       uint32   // no message before it is open
	waiting     int32    // messages that are accepted and not complete

	// matched counts messages for which a receive has matched, or that are no
	// more, and matchedBytes the bytes of those that came eagerly; eager
	// counts those of all that have begun (E20).
	matched, matchedBytes, eager uint32
	// advertisedLimit and advertisedEager are what the peer knows of the limits.
	advertisedLimit, advertisedEager uint32
	firstMessage                     uint32
	// window is the number of messages that the peer may have without a receive.
	window  uint32
	offered bool // the packet that is examined was given to PacketAdvertised
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

// limits returns what the peer may send (E20). Numbers of messages that are open
// at a time stay comparable (E4).
func (r *receiving) limits() (messages, eager uint32) {
	messages = r.firstMessage + r.window + r.matched
	if int32(messages-r.floor) > maxMessages {
		messages = r.floor + maxMessages
	}
	return messages, uint32(r.cfg.EagerBytes) + r.matchedBytes
}

// floorStep is how far raiseFloor goes at a time: further than the packets go that arrive between two calls.
const floorStep = 1 << 10

// raiseFloor finds the oldest message that is open, or comes closer to it.
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

// find returns the open message of a number that does not rest, or nil.
func (r *receiving) find(number uint32) *inbound {
	if m := r.newest; m != nil && m.number == number {
		return m
	}
	return r.byNumber.get(number)
}

// open is how many messages are.
func (r *receiving) open() int {
	n := int(r.byNumber.count) + r.resting.len()
	if r.newest != nil {
		n++
	}
	return n
}

// take returns a message that is 0.
func (r *receiving) take() *inbound {
	m := r.free
	if m == nil {
		return new(inbound)
	}
	r.free, m.after = m.after, nil
	return m
}

// enter puts a message that had been opened before into its place in the order.
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

// creditDue reports whether the new limits are to be sent to the peer (E22): sooner when it has little left.
func (r *receiving) creditDue() bool {
	messages, eager := r.limits()
	quarter := max(r.cfg.Messages/4, 1)
	due := quarter
	if int(int32(r.advertisedLimit-r.expected)) < quarter {
		due = max(r.cfg.Messages/64, 1)
	}
	return int(messages-r.advertisedLimit) >= due || int(eager-r.advertisedEager) >= max(r.cfg.EagerBytes/4, 1)
}

// close forgets a message.
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
