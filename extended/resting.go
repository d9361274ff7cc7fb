package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// MaxInline is the largest eager message, in bytes, that may rest with its payload: its credit of bytes returns
// while it still waits for a receive.
const MaxInline = 16

// resting are the messages of the peer that wait for a receive, complete or announced, and of which the caller
// keeps all else: its refs, with the bits, by the messages' numbers. There may be millions.
type resting = index[uint32, uint32]

// eagerBit marks an eager message, which is complete, and floatBit one of floats.
const (
	eagerBit = 1 << 31
	floatBit = 1 << 30
	refBits  = floatBit - 1
)

// takeRest removes a number and returns its ref, or 0. It frees a large table that becomes empty.
func takeRest(q *resting, number uint32) (ref uint32) {
	if ref = q.remove(number); ref != 0 && q.count == 0 && len(q.slots) > keptRests {
		*q = resting{}
	}
	return ref
}

// keptRests is how many slots are kept for the next messages when none rests.
const keptRests = 1 << 12

// Rest gives the Conn's memory of a message back that waits for a receive. Its caller keeps what Open and Copy have
// said of it, until it calls Wake or the message is Lost, which hands ref back; ref is 1 to 2³⁰ − 1. It reports false,
// and nothing changes, for a message that is not at rest: of which DATA is missing that comes eagerly, which was
// accepted or is being canceled, or an eager one of more than MaxInline bytes.
func (c *Conn) Rest(message Message, ref uint32) bool {
	r := &c.recvs
	if uint32(message>>32) != r.epoch {
		return false
	}
	m := r.find(message.Number())
	if m == nil || ref == 0 || ref > refBits || m.accepted || m.asked || m.eager && (!m.complete() || m.length > MaxInline) {
		return false
	}
	if m.eager {
		ref |= eagerBit
		if !m.returned {
			r.matchedBytes += uint32(m.length)
			c.changed = true
		}
	}
	if m.datatype == protocol.Float {
		ref |= floatBit
	}
	if r.resting == nil {
		r.resting = new(resting)
	}
	r.resting.put(m.number, ref)
	r.close(m)
	return true
}

// Woken is what the caller has kept of a message.
type Woken struct {
	Message   Message
	Comm, Tag uint32
	Length    int64
	Datatype  protocol.Datatype
	Since     Instant
}

// Wake takes back a message that rests, before it is accepted. A message that is no more is no fault.
func (c *Conn) Wake(w *Woken) {
	r := &c.recvs
	if uint32(w.Message>>32) != r.epoch {
		return
	}
	ref := takeRest(r.resting, w.Message.Number())
	if ref == 0 {
		return
	}
	m := r.take()
	m.number, m.comm, m.tag, m.datatype, m.length, m.since = w.Message.Number(), w.Comm, w.Tag, w.Datatype, w.Length, w.Since
	if ref&eagerBit != 0 {
		m.eager, m.returned, m.take, m.got = true, true, m.length, m.length
	}
	r.enter(m)
}
