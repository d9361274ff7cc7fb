package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// MaxInline is the length in bytes of the longest eager message that may rest. The eager credit of a resting message is
// returned although no receive has matched it.
const MaxInline = 16

// resting maps the number of each resting message to the caller's ref, combined with the bits below. A resting message
// waits for a receive. The caller keeps its other state, because there may be millions of them.
type resting = index[uint32, uint32]

// eagerBit marks an eager message, which is always complete. floatBit marks a message whose datatype is Float.
const (
	eagerBit = 1 << 31
	floatBit = 1 << 30
	refBits  = floatBit - 1
)

// removeResting removes the message with the given number and returns its ref, or 0 if no such message is resting. It
// frees a large table that has become empty.
func removeResting(q *resting, number uint32) (ref uint32) {
	if ref = q.remove(number); ref != 0 && q.count == 0 && len(q.slots) > maxKeptSlots {
		*q = resting{}
	}
	return ref
}

// maxKeptSlots is the size, in slots, of the largest table that is kept for later use when no message is resting.
const maxKeptSlots = 1 << 12

// Rest releases the Conn's memory for an inbound message that is waiting for a receive. The caller must keep the
// contents of the message's Open and Copy actions until it calls Wake or the message is Lost. ref must be 1 to 2³⁰ − 1;
// the Lost action returns it. Rest returns false and changes nothing for a message that cannot rest: an accepted
// message, a message being canceled, an incomplete eager message, or an eager message of more than MaxInline bytes.
func (c *Conn) Rest(message Message, ref uint32) bool {
	recv := &c.recvs
	if uint32(message>>32) != recv.epoch {
		return false
	}
	msg := recv.find(message.Number())
	if msg == nil || ref == 0 || ref > refBits || msg.accepted || msg.cancelRequested ||
		msg.eager && (!msg.isComplete() || msg.length > MaxInline) {
		return false
	}
	if msg.eager {
		ref |= eagerBit
		if !msg.creditReturned {
			recv.matchedBytes += uint32(msg.length)
			c.changed = true
		}
	}
	if msg.datatype == protocol.Float {
		ref |= floatBit
	}
	if recv.resting == nil {
		recv.resting = new(resting)
	}
	recv.resting.put(msg.number, ref)
	recv.close(msg)
	return true
}

// RestingMessage is the state of a resting message that the caller has kept.
type RestingMessage struct {
	Message   Message
	Comm, Tag uint32
	Length    int64
	Datatype  protocol.Datatype
	// Since is the time at which the message began, from which its wait is measured.
	Since Instant
}

// Wake restores a resting message. Call it before Accept. It does nothing for a message that no longer exists.
func (c *Conn) Wake(message *RestingMessage) {
	recv := &c.recvs
	if uint32(message.Message>>32) != recv.epoch {
		return
	}
	ref := removeResting(recv.resting, message.Message.Number())
	if ref == 0 {
		return
	}
	msg := recv.allocate()
	msg.number, msg.comm, msg.tag, msg.datatype, msg.length, msg.openedAt = message.Message.Number(), message.Comm,
		message.Tag, message.Datatype, message.Length,
		message.Since
	if ref&eagerBit != 0 {
		msg.eager, msg.creditReturned, msg.expectedBytes, msg.receivedBytes = true, true, msg.length, msg.length
	}
	recv.insert(msg)
}
