package extended

import (
	"math/bits"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// packet is a numbered packet to the peer. It exists from its first transmission until it and all earlier packets are
// acknowledged.
type packet struct {
	header          protocol.ExtHeader
	message         *outbound // the message whose payload the packet carries, or nil
	payload         int32
	retransmissions uint16
	state           packetState
	// fetched is set if the peer reads the payload directly from our memory, so that the network does not carry it
	// (SetFetchPayload).
	fetched bool
	// prev and next are the numbers of the packets before and after this one in the list that holds it.
	prev, next uint32
	// order is the position of the packet's last transmission among all transmissions of all packets.
	order  uint64
	sentAt Instant
}

// bytesInFlight returns the payload length that counts toward the bytes in flight. It is 0 if the peer fetches the
// payload.
func (p *packet) bytesInFlight() int64 {
	if p.fetched {
		return 0
	}
	return int64(p.payload)
}

// packetState is the state of a packet since its last transmission.
type packetState uint8

const (
	// packetSent: the packet is in flight.
	packetSent packetState = iota + 1
	// packetLost: the packet was declared lost, and waits to be retransmitted.
	packetLost
	// packetAcked: the packet was acknowledged before an earlier one, so it still has its place in the ring.
	packetAcked
)

// flight is a ring of the numbered packets from base to nextNumber − 1. The packet base is the first unacknowledged
// one, and nextNumber is the number of the next new packet. The ring grows as needed.
type flight struct {
	ring             []packet // length is a power of two
	base, nextNumber uint32
	// ackedBits holds one bit per packet in ring, which is set if the packet was acknowledged before the packet base.
	// The bits are allocated on first use.
	ackedBits []uint64
	// minSentOnce is a lower bound for the numbers of packets in flight that were sent only once. The list
	// retransmitted holds the other packets in flight, in the order of their last transmission. The list lost holds the
	// packets that are waiting to be retransmitted.
	minSentOnce         uint32
	retransmitted, lost list
	lastBegun           uint32 // number of the first packet of the last message begun
	count               int    // packets in flight
	bytes               int64  // payload bytes in flight, except payload that the peer fetches
	// order counts all transmissions. It is the order of the last one.
	order uint64
	// highestAcked is the highest order among the acknowledged transmissions, and newestSent is the latest time at
	// which one of them was sent.
	highestAcked uint64
	newestSent   Instant
}

// list is a doubly linked list of packets. The links are packet numbers.
type list struct {
	first, last uint32
	count       int32
}

func (f *flight) packetAt(number uint32) *packet {
	return &f.ring[number&uint32(len(f.ring)-1)]
}

// outstanding returns the number of packets from base up to nextNumber, acknowledged or not.
func (f *flight) outstanding() int { return int(f.nextNumber - f.base) }

// empty reports whether no packet is in flight and none is waiting for retransmission.
func (f *flight) empty() bool { return f.count == 0 && f.lost.count == 0 }

// add allocates a packet with the next number. The packet is not in a list yet.
func (f *flight) add() *packet {
	if f.outstanding() == len(f.ring) {
		f.grow()
	}
	p := f.packetAt(f.nextNumber)
	*p = packet{}
	p.header.Number = f.nextNumber
	f.nextNumber++
	return p
}

// grow doubles the ring. The bits of ackedBits move as well, because their positions depend on its length.
func (f *flight) grow() {
	old := f.ring
	f.ring = make([]packet, max(4, 2*len(old)))
	for n := f.base; n != f.nextNumber; n++ {
		*f.packetAt(n) = old[n&uint32(len(old)-1)]
	}
	if f.ackedBits != nil {
		f.ackedBits = nil
		for n := f.base; n != f.nextNumber; n++ {
			if f.packetAt(n).state == packetAcked {
				f.setAckedBit(n)
			}
		}
	}
}

// bitFor returns the word of ackedBits that holds the bit for a packet number, and the position of the bit in the word.
func (f *flight) bitFor(number uint32) (word *uint64, bit uint32) {
	i := number & uint32(len(f.ring)-1)
	return &f.ackedBits[i/64], i % 64
}

// setAckedBit records that a packet other than base was acknowledged.
func (f *flight) setAckedBit(number uint32) {
	if f.ackedBits == nil {
		f.ackedBits = make([]uint64, max(len(f.ring)/64, 1))
	}
	word, bit := f.bitFor(number)
	*word |= 1 << bit
}

// clearAckedBit clears the bit of the packet base, which was acknowledged, just before base advances to the next
// packet.
func (f *flight) clearAckedBit() {
	word, bit := f.bitFor(f.base)
	*word &^= 1 << bit
}

// nextUnacked returns the first packet number from n up to but excluding end that is not acknowledged. It returns end
// if there is none.
func (f *flight) nextUnacked(n, end uint32) uint32 {
	if f.ackedBits == nil {
		return n
	}
	wrap := min(64, uint32(len(f.ring)))
	for int32(end-n) > 0 {
		word, bit := f.bitFor(n)
		step := min(wrap-bit, end-n)
		if at := uint32(bits.TrailingZeros64(^*word >> bit)); at < step {
			return n + at
		}
		n += step
	}
	return end
}

// append puts a packet at the end of list l.
func (f *flight) append(l *list, p *packet) {
	n := p.header.Number
	if l.count == 0 {
		l.first = n
	} else {
		f.packetAt(l.last).next, p.prev = n, l.last
	}
	l.last = n
	l.count++
}

// remove removes a packet from list l.
func (f *flight) remove(l *list, pkt *packet) {
	n := pkt.header.Number
	if n == l.first {
		l.first = pkt.next
	} else {
		f.packetAt(pkt.prev).next = pkt.next
	}
	if n == l.last {
		l.last = pkt.prev
	} else {
		f.packetAt(pkt.next).prev = pkt.prev
	}
	l.count--
}

// markSent records that a packet, which must not be in a list, was transmitted. After a retransmission, the caller
// appends the packet to the list retransmitted.
func (f *flight) markSent(now Instant, p *packet) {
	f.order++
	f.count++
	f.bytes += p.bytesInFlight()
	p.order, p.sentAt, p.state = f.order, now, packetSent
}

// removeInFlight removes a packet from the set of packets in flight.
func (f *flight) removeInFlight(p *packet) {
	f.count--
	f.bytes -= p.bytesInFlight()
	if p.retransmissions > 0 {
		f.remove(&f.retransmitted, p)
	}
}

// markLost moves a packet in flight to the list of packets waiting to be retransmitted.
func (f *flight) markLost(p *packet) {
	f.removeInFlight(p)
	p.state = packetLost
	f.append(&f.lost, p)
}

// markAcked marks a packet as acknowledged and removes it from its list.
func (f *flight) markAcked(pkt *packet) {
	if pkt.state == packetSent {
		f.removeInFlight(pkt)
	} else {
		f.remove(&f.lost, pkt)
	}
	pkt.state = packetAcked
}

// oldest returns the packet in flight whose last transmission was the earliest, or nil if no packet is in flight.
func (f *flight) oldest() *packet {
	if f.count == 0 {
		return nil
	}
	if f.retransmitted.count+f.lost.count == 0 {
		return f.packetAt(f.base)
	}
	var pkt *packet
	if f.count > int(f.retransmitted.count) {
		for f.minSentOnce = later(f.minSentOnce, f.base); ; f.minSentOnce++ {
			if pkt = f.packetAt(f.minSentOnce); pkt.state == packetSent && pkt.retransmissions == 0 {
				break
			}
		}
	}
	if f.retransmitted.count > 0 {
		if q := f.packetAt(f.retransmitted.first); pkt == nil || q.order < pkt.order {
			pkt = q
		}
	}
	return pkt
}

// isOvertaken reports whether a packet that was sent after p has been acknowledged.
func (f *flight) isOvertaken(p *packet) bool { return p.order < f.highestAcked }

// reset discards all packets. The parameter first becomes the number of the next packet.
func (f *flight) reset(first uint32) {
	clear(f.ring)
	*f = flight{ring: f.ring, base: first, nextNumber: first, minSentOnce: first}
}
