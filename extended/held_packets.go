package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// heldPackets stores copies of packets, by packet number, whose messages cannot begin before earlier messages have
// begun (E10). At least one packet of the window is missing, so it holds fewer packets than the window allows.
type heldPackets struct {
	// slots maps a packet's number, modulo the length of slots, to its index in packets plus 1. The length is a power
	// of two, and grows when the numbers of the held packets are further apart.
	slots   []uint16
	packets []heldPacket
	free    [][]byte
	// bytes is the length of the held payload, and freeBytes the capacity of the buffers in free.
	bytes     int32
	freeBytes int32
}

type heldPacket struct {
	header  protocol.ExtHeader
	payload []byte
}

// Limits of the buffers kept for reuse.
const (
	maxFreeBuffers = 64
	maxFreeBytes   = 1 << 17
)

func (q *heldPackets) slot(number uint32) *uint16 { return &q.slots[number&uint32(len(q.slots)-1)] }

// find returns the held packet with the given packet number, or nil if no such packet is held.
func (q *heldPackets) find(number uint32) *heldPacket {
	if i := *q.slot(number); i > 0 && q.packets[i-1].header.Number == number {
		return &q.packets[i-1]
	}
	return nil
}

// reset drops all packets, and keeps some of their buffers for reuse.
func (q *heldPackets) reset() {
	for n := len(q.packets); n > 0; n-- {
		q.remove(&q.packets[n-1])
	}
}

// add adds a copy of a packet. next is the first missing number; no packet with a lower number is held.
func (q *heldPackets) add(next uint32, header *protocol.ExtHeader, payload []byte) {
	if distance := int(header.Number - next); distance >= len(q.slots) {
		q.grow(distance)
	}
	var buf []byte
	if n := len(q.free); n > 0 && len(payload) > 0 {
		buf, q.free = q.free[n-1], q.free[:n-1]
		q.freeBytes -= int32(cap(buf))
	}
	q.packets = append(q.packets, heldPacket{header: *header, payload: append(buf[:0], payload...)})
	*q.slot(header.Number) = uint16(len(q.packets))
	q.bytes += int32(len(payload))
}

// grow enlarges slots, so that a packet at the given distance from the first missing one can be added.
func (q *heldPackets) grow(distance int) {
	n := max(16, 2*len(q.slots))
	for n <= distance {
		n *= 2
	}
	q.slots = make([]uint16, n)
	for i := range q.packets {
		*q.slot(q.packets[i].header.Number) = uint16(i + 1)
	}
}

// remove removes a packet. Its payload remains valid until the next call of add.
func (q *heldPackets) remove(pkt *heldPacket) {
	q.bytes -= int32(len(pkt.payload))
	if n := int32(cap(pkt.payload)); n > 0 && len(q.free) < maxFreeBuffers && q.freeBytes+n <= maxFreeBytes {
		q.free = append(q.free, pkt.payload)
		q.freeBytes += n
	}
	i, last := q.slot(pkt.header.Number), len(q.packets)-1
	*pkt = q.packets[last] // the last packet moves into its place
	*q.slot(pkt.header.Number) = *i
	*i = 0
	q.packets[last] = heldPacket{}
	q.packets = q.packets[:last]
}

// holdPacket keeps a packet of a message that cannot begin yet, because earlier messages have not begun. missing is the
// number of the first missing packet.
func (r *receiving) holdPacket(header *protocol.ExtHeader, payload []byte, missing uint32) Reason {
	if int32(header.Message-r.nextMessage) < 0 {
		return ReasonStale
	}
	if header.Number == missing {
		return ReasonOrder // no missing packet could begin its predecessors
	}
	messages, eager := r.limits()
	if int32(header.Message-messages) >= 0 || int(r.heldPackets.bytes)+len(payload) > int(eager-r.eagerBytes) {
		return ReasonCredit
	}
	r.heldPackets.add(missing, header, payload)
	return ReasonNone
}

// releaseHeld delivers the held packets whose messages can begin now. The numbers of all held packets are at least from
// and less than end.
func (r *receiving) releaseHeld(now Instant, from, missing, end uint32) {
	packets := &r.heldPackets
	for n := from; n != end && len(packets.packets) > 0; n++ {
		pkt := packets.find(n)
		if pkt == nil {
			continue
		}
		header, payload := pkt.header, pkt.payload
		distance := int32(header.Message - r.nextMessage)
		early := distance > 0 || distance == 0 && header.Type == protocol.Error
		if early && int32(n-missing) >= 0 {
			continue
		}
		packets.remove(pkt)
		var reason Reason
		switch {
		case early:
			reason = ReasonOrder // no missing packet could begin its predecessors
		case header.Type == protocol.SendRequest:
			reason = r.onRequest(now, &header, payload, missing)
		case header.Type == protocol.Data:
			reason = r.onData(now, &header, payload, missing)
		default:
			reason = r.onCancel(&header, missing)
		}
		if reason != ReasonNone {
			r.drop(reason, &header)
		}
	}
}
