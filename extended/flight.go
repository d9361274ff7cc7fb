package extended

import (
	"math/bits"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// packet is a numbered packet of ours, from its first transmission until it and all packets before it are acknowledged.
type packet struct {
	header          protocol.ExtHeader
	message         *outbound // whose payload it carries, or nil
	payload         int32
	retransmissions uint16
	state           packetState
	// fetched: the payload is not carried by the network (LongPackets).
	fetched bool
	// before and after are the numbers of its neighbors in its list.
	before, after uint32
	// order is the number of its last transmission, counted over all packets.
	order uint64
	sent  Instant
}

// carried returns the number of payload bytes that count as in flight.
func (p *packet) carried() int64 {
	if p.fetched {
		return 0
	}
	return int64(p.payload)
}

type packetState uint8

const (
	packetSent packetState = iota + 1
	packetLost
	packetAcked
)

// flight has the packets from base, the first unacknowledged one, up to next, the number of the next new one. The ring
// grows with the window.
type flight struct {
	ring       []packet // length is a power of two
	base, next uint32
	// beyond has a bit for each packet of ring that was acknowledged while base was not. It is allocated on first use.
	beyond []uint64
	// Packets in flight that were sent once are in the order of their numbers, and none precedes fresh. again has the
	// other packets in flight, in the order of their last transmission. lost has the packets to be retransmitted.
	fresh       uint32
	again, lost list
	began       uint32 // first packet of the last message
	count       int    // packets in flight
	bytes       int64  // payload bytes in flight that the network carries
	order       uint64
	// newest is the highest acknowledged order. newestSent is the latest send time of an acknowledged packet.
	newest     uint64
	newestSent Instant
}

// list is a list of packets, linked by their numbers.
type list struct {
	first, last uint32
	count       int32
}

func (f *flight) at(number uint32) *packet {
	return &f.ring[number&uint32(len(f.ring)-1)]
}

// outstanding returns the number of packets from base to next.
func (f *flight) outstanding() int { return int(f.next - f.base) }

// empty reports whether no packet is in flight or waits for retransmission.
func (f *flight) empty() bool { return f.count == 0 && f.lost.count == 0 }

// add allocates a new packet with the next number. It is in no list yet.
func (f *flight) add() *packet {
	if f.outstanding() == len(f.ring) {
		f.grow()
	}
	p := f.at(f.next)
	*p = packet{}
	p.header.Number = f.next
	f.next++
	return p
}

func (f *flight) grow() {
	old := f.ring
	f.ring = make([]packet, max(4, 2*len(old)))
	for n := f.base; n != f.next; n++ {
		*f.at(n) = old[n&uint32(len(old)-1)]
	}
	if f.beyond != nil {
		f.beyond = nil
		for n := f.base; n != f.next; n++ {
			if f.at(n).state == packetAcked {
				f.ackedBeyond(n)
			}
		}
	}
}

// bit returns the word of beyond for a number and its bit in the word.
func (f *flight) bit(number uint32) (word *uint64, bit uint32) {
	i := number & uint32(len(f.ring)-1)
	return &f.beyond[i/64], i % 64
}

// ackedBeyond records the acknowledgement of a packet other than base.
func (f *flight) ackedBeyond(number uint32) {
	if f.beyond == nil {
		f.beyond = make([]uint64, max(len(f.ring)/64, 1))
	}
	word, bit := f.bit(number)
	*word |= 1 << bit
}

// passed clears the bit of base, which was acknowledged before, so that base can advance.
func (f *flight) passed() {
	word, bit := f.bit(f.base)
	*word &^= 1 << bit
}

// unacked returns the first unacknowledged number from n up to end, or end.
func (f *flight) unacked(n, end uint32) uint32 {
	if f.beyond == nil {
		return n
	}
	wrap := min(64, uint32(len(f.ring)))
	for int32(end-n) > 0 {
		word, bit := f.bit(n)
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
		f.at(l.last).after, p.before = n, l.last
	}
	l.last = n
	l.count++
}

// remove removes a packet from list l.
func (f *flight) remove(l *list, p *packet) {
	n := p.header.Number
	if n == l.first {
		l.first = p.after
	} else {
		f.at(p.before).after = p.after
	}
	if n == l.last {
		l.last = p.before
	} else {
		f.at(p.after).before = p.before
	}
	l.count--
}

// transmitted records a transmission of a packet, which is in no list. The caller puts a retransmitted one into again.
func (f *flight) transmitted(now Instant, p *packet) {
	f.order++
	f.count++
	f.bytes += p.carried()
	p.order, p.sent, p.state = f.order, now, packetSent
}

// onAcked removes a packet from those in flight.
func (f *flight) onAcked(p *packet) {
	f.count--
	f.bytes -= p.carried()
	if p.retransmissions > 0 {
		f.remove(&f.again, p)
	}
}

// lose moves a packet from those in flight to those to be retransmitted.
func (f *flight) lose(p *packet) {
	f.onAcked(p)
	p.state = packetLost
	f.append(&f.lost, p)
}

// acked removes an acknowledged packet from its list.
func (f *flight) acked(p *packet) {
	if p.state == packetSent {
		f.onAcked(p)
	} else {
		f.remove(&f.lost, p)
	}
	p.state = packetAcked
}

// oldest returns the packet in flight with the earliest transmission, or nil.
func (f *flight) oldest() *packet {
	if f.count == 0 {
		return nil
	}
	if f.again.count+f.lost.count == 0 {
		return f.at(f.base)
	}
	var p *packet
	if f.count > int(f.again.count) {
		for f.fresh = later(f.fresh, f.base); ; f.fresh++ {
			if p = f.at(f.fresh); p.state == packetSent && p.retransmissions == 0 {
				break
			}
		}
	}
	if f.again.count > 0 {
		if q := f.at(f.again.first); p == nil || q.order < p.order {
			p = q
		}
	}
	return p
}

// overtaken reports whether a packet sent later than p was acknowledged.
func (f *flight) overtaken(p *packet) bool { return p.order < f.newest }

// reset forgets all packets; the next packet has number first.
func (f *flight) reset(first uint32) {
	clear(f.ring)
	*f = flight{ring: f.ring, base: first, next: first, fresh: first}
}
