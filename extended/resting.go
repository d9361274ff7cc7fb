package extended

import (
	"math/bits"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// MaxInline is the largest eager message, in bytes, that may rest with its payload: its credit of bytes returns
// while it still waits for a receive.
const MaxInline = 16

// resting are the messages of the peer that wait for a receive, complete or announced, and of which the caller
// keeps all else: by their numbers, 8 bytes each in a hash table. There may be millions.
type resting struct {
	slots []rest // a power of two, at most three quarters full
	count int
	shift uint8
}

// rest is one of them. ref is 0 in a free slot.
type rest struct {
	number uint32
	ref    uint32 // the caller's, and the bits
}

// eagerBit marks an eager message, which is complete, and floatBit one of floats.
const (
	eagerBit = 1 << 31
	floatBit = 1 << 30
	refBits  = floatBit - 1
)

// len is how many rest.
func (q *resting) len() int {
	if q == nil {
		return 0
	}
	return q.count
}

// at is where the search for a number begins, as in index.
func (q *resting) at(number uint32) int {
	return int(uint64(number) * 0x9e3779b97f4a7c15 >> q.shift)
}

// find returns the slot of a number, or -1.
func (q *resting) find(number uint32) int {
	if q.len() == 0 {
		return -1
	}
	for i := q.at(number); q.slots[i].ref != 0; i = (i + 1) & (len(q.slots) - 1) {
		if q.slots[i].number == number {
			return i
		}
	}
	return -1
}

// get returns the ref of a number, 0 if it does not rest.
func (q *resting) get(number uint32) uint32 {
	if i := q.find(number); i >= 0 {
		return q.slots[i].ref
	}
	return 0
}

// put adds a number that does not rest yet.
func (q *resting) put(number, ref uint32) {
	if 4*(q.count+1) > 3*len(q.slots) {
		q.resize(max(64, 2*len(q.slots)))
	}
	q.insert(rest{number, ref})
}

func (q *resting) insert(r rest) {
	i := q.at(r.number)
	for q.slots[i].ref != 0 {
		i = (i + 1) & (len(q.slots) - 1)
	}
	q.slots[i] = r
	q.count++
}

func (q *resting) resize(n int) {
	old := q.slots
	q.slots, q.count, q.shift = make([]rest, n), 0, uint8(64-bits.TrailingZeros(uint(n)))
	for _, r := range old {
		if r.ref != 0 {
			q.insert(r)
		}
	}
}

// remove takes the number in slot i out. What follows moves up, so that no search ends too soon.
func (q *resting) remove(i int) {
	mask := len(q.slots) - 1
	for j := (i + 1) & mask; q.slots[j].ref != 0; j = (j + 1) & mask {
		if home := q.at(q.slots[j].number); (j-home)&mask >= (j-i)&mask {
			q.slots[i] = q.slots[j]
			i = j
		}
	}
	q.slots[i] = rest{}
	if q.count--; q.count == 0 && len(q.slots) > keptRests {
		*q = resting{}
	}
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
	i := r.resting.find(w.Message.Number())
	if i < 0 {
		return
	}
	eager := r.resting.slots[i].ref&eagerBit != 0
	r.resting.remove(i)
	m := r.take()
	m.number, m.comm, m.tag, m.datatype, m.length, m.since = w.Message.Number(), w.Comm, w.Tag, w.Datatype, w.Length, w.Since
	if eager {
		m.eager, m.returned, m.take, m.got = true, true, m.length, m.length
	}
	r.enter(m)
}
