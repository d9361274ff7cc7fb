package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// held are packets of messages whose predecessors are missing (E10): copies, by packet
// number. They are fewer than the window, as the packet that they wait for is
// missing.
type held struct {
	slots     []heldPacket // a power of two, which grows as packets are held that are further apart
	count     int
	bytes     int
	free      [][]byte
	freeBytes int
}

type heldPacket struct {
	used    bool
	header  protocol.ExtHeader
	payload []byte
}

// Buffers are kept for the next time: so many, and so many bytes.
const (
	maxFreeBuffers = 64
	maxFreeBytes   = 1 << 17
)

func (q *held) at(number uint32) *heldPacket { return &q.slots[number&uint32(len(q.slots)-1)] }

func (q *held) reset() {
	for i := range q.slots {
		if q.slots[i].used {
			q.drop(&q.slots[i])
		}
	}
}

// add holds a packet. next is the first number that is missing: no packet before it
// is held.
func (q *held) add(next uint32, h *protocol.ExtHeader, payload []byte) {
	if distance := int(h.Number - next); distance >= len(q.slots) {
		q.grow(distance)
	}
	var buf []byte
	if n := len(q.free); n > 0 && len(payload) > 0 {
		buf, q.free = q.free[n-1], q.free[:n-1]
		q.freeBytes -= cap(buf)
	}
	*q.at(h.Number) = heldPacket{used: true, header: *h, payload: append(buf[:0], payload...)}
	q.count++
	q.bytes += len(payload)
}

// grow makes room for a packet so far from the first that is missing.
func (q *held) grow(distance int) {
	old := q.slots
	n := max(16, 2*len(old))
	for n <= distance {
		n *= 2
	}
	q.slots = make([]heldPacket, n)
	for i := range old {
		if old[i].used {
			*q.at(old[i].header.Number) = old[i]
		}
	}
}

// drop takes a packet out. Its payload stays valid until another is held.
func (q *held) drop(p *heldPacket) {
	q.count--
	q.bytes -= len(p.payload)
	if n := cap(p.payload); n > 0 && len(q.free) < maxFreeBuffers && q.freeBytes+n <= maxFreeBytes {
		q.free = append(q.free, p.payload)
		q.freeBytes += n
	}
	*p = heldPacket{}
}

// hold keeps a packet of a message whose predecessors are missing.
func (c *Conn) hold(h *protocol.ExtHeader, payload []byte) Reason {
	r := &c.recvs
	if int32(h.Message-r.expected) < 0 {
		return ReasonStale
	}
	if h.Number == c.arrivals.next {
		return ReasonOrder // no missing packet could begin its predecessors
	}
	messages, eager := r.limits(&c.cfg)
	if int32(h.Message-messages) >= 0 || r.held.bytes+len(payload) > int(eager-r.eager) {
		return ReasonCredit
	}
	r.held.add(c.arrivals.next, h, payload)
	return ReasonNone
}

// release delivers the packets that were held whose predecessors have begun. from is the
// first packet number that may be held.
func (c *Conn) release(now Instant, from uint32) {
	a, q := &c.arrivals, &c.recvs.held
	for n := from; n != a.end && q.count > 0; n++ {
		p := q.at(n)
		if !p.used || p.header.Number != n {
			continue
		}
		h, payload := p.header, p.payload
		distance := int32(h.Message - c.recvs.expected)
		early := distance > 0 || distance == 0 && h.Type == protocol.Error
		if early && int32(n-a.next) >= 0 {
			continue
		}
		q.drop(p)
		reason := ReasonOrder // nothing is missing any more that could bring it
		if !early {
			reason = c.deliver(now, &h, payload)
		}
		if reason != ReasonNone {
			c.drop(reason, &h)
		}
	}
}
