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
	length    int64
	// take is how many bytes are to come, got how many have.
	take, got     int64
	room          int64 // once it is accepted
	since         Instant
	before, after *inbound
}

func (m *inbound) complete() bool { return (m.eager || m.accepted) && m.got == m.take }

// receiving is the receiver's half.
type receiving struct {
	first, last *inbound       // in the order of their numbers
	byNumber    index[inbound] // all but the newest
	newest      *inbound       // the one that was opened last, if it is still open
	held        held
	expected    uint32   // number of the message that begins next
	waiting     int      // messages that are accepted and not complete
	asked       []uint32 // numbers of those that the peer cancels, until Flush

	// matched counts messages for which a receive has matched, or that are no
	// more, and matchedBytes the bytes of those that came eagerly; eager
	// counts those of all that have begun (E20).
	matched, matchedBytes, eager uint32
	// advertisedLimit and advertisedEager are what the peer knows of the limits.
	advertisedLimit, advertisedEager uint32
	firstMessage                     uint32
	free                             *inbound
}

func (r *receiving) reset(first uint32) {
	for m := r.first; m != nil; {
		next := m.after
		*m = inbound{after: r.free}
		r.free = m
		m = next
	}
	r.held.reset()
	r.byNumber.clear()
	*r = receiving{byNumber: r.byNumber, held: r.held, asked: r.asked[:0], free: r.free, expected: first, firstMessage: first}
}

// limits returns what the peer may send (E20). Numbers of messages that are open
// at a time stay comparable (E4).
func (r *receiving) limits(cfg *Config) (messages, eager uint32) {
	messages = r.firstMessage + uint32(cfg.Messages) + r.matched
	if r.first != nil && int32(messages-r.first.number) > maxMessages {
		messages = r.first.number + maxMessages
	}
	return messages, uint32(cfg.EagerBytes) + r.matchedBytes
}

func (r *receiving) advertised(messages, eager uint32) {
	r.advertisedLimit, r.advertisedEager = messages, eager
}

// find returns the open message of a number, or nil.
func (r *receiving) find(number uint32) *inbound {
	if m := r.newest; m != nil && m.number == number {
		return m
	}
	return r.byNumber.get(uint64(number))
}

// open is how many messages are.
func (r *receiving) open() int {
	if r.newest != nil {
		return r.byNumber.count + 1
	}
	return r.byNumber.count
}

// creditDue reports whether the new limits are to be sent to the peer (E22).
func (r *receiving) creditDue(cfg *Config) bool {
	messages, eager := r.limits(cfg)
	return int(messages-r.advertisedLimit) >= max(cfg.Messages/4, 1) || int(eager-r.advertisedEager) >= max(cfg.EagerBytes/4, 1)
}

// close forgets a message.
func (r *receiving) close(m *inbound) {
	if m == r.newest {
		r.newest = nil
	} else {
		r.byNumber.remove(uint64(m.number))
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
