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
	// fetched is set if the network does not carry the payload, because the peer fetches it (LongPackets).
	fetched bool
	// before and after are the numbers of the packet's neighbors in its list.
	before, after uint32
	// order is the number of the packet's last transmission, in the sequence of all transmissions of all packets.
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

// flight holds the packets from base, the first unacknowledged one, up to but excluding next, the number of the next
// new packet. The ring grows as needed.
type flight struct {
	ring       []packet // length is a power of two
	base, next uint32
	// beyond has a bit for each packet in ring, which is set if the packet was acknowledged before base. It is
	// allocated on first use.
	beyond []uint64
	// No packet in flight that was sent only once has a number below fresh. again lists the other packets in flight, in
	// the order of their last transmission. lost lists the packets waiting to be retransmitted.
	fresh       uint32
	again, lost list
	began       uint32 // number of the first packet of the last message begun
	count       int    // packets in flight
	bytes       int64  // payload bytes in flight, without those that the peer fetches
	order       uint64
	// newest is the highest order of an acknowledged transmission, and newestSent the latest send time of one.
	newest     uint64
	newestSent Instant
}

// list is a list of packets that are linked by their numbers.
type list struct {
	first, last uint32
	count       int32
}

func (f *flight) at(number uint32) *packet {
	return &f.ring[number&uint32(len(f.ring)-1)]
}

// outstanding returns the number of packets from base up to next, acknowledged or not.
func (f *flight) outstanding() int { return int(f.next - f.base) }

// empty reports whether no packet is in flight and none is waiting for retransmission.
func (f *flight) empty() bool { return f.count == 0 && f.lost.count == 0 }

// add allocates a packet with the next number. The packet is not in a list yet.
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

// ackedBeyond records that a packet other than base was acknowledged.
func (f *flight) ackedBeyond(number uint32) {
	if f.beyond == nil {
		f.beyond = make([]uint64, max(len(f.ring)/64, 1))
	}
	word, bit := f.bit(number)
	*word |= 1 << bit
}

// passed clears the bit of base, an acknowledged packet, just before base advances.
func (f *flight) passed() {
	word, bit := f.bit(f.base)
	*word &^= 1 << bit
}

// unacked returns the first number in [n, end) that is not acknowledged, or end if there is none.
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

// transmitted records a transmission of a packet that is not in a list. If it is a retransmission, the caller appends
// the packet to again.
func (f *flight) transmitted(now Instant, p *packet) {
	f.order++
	f.count++
	f.bytes += p.carried()
	p.order, p.sent, p.state = f.order, now, packetSent
}

// onAcked removes a packet from the set of packets in flight.
func (f *flight) onAcked(p *packet) {
	f.count--
	f.bytes -= p.carried()
	if p.retransmissions > 0 {
		f.remove(&f.again, p)
	}
}

// lose moves a packet in flight to the list of packets waiting to be retransmitted.
func (f *flight) lose(p *packet) {
	f.onAcked(p)
	p.state = packetLost
	f.append(&f.lost, p)
}

// acked marks a packet as acknowledged and removes it from its list.
func (f *flight) acked(p *packet) {
	if p.state == packetSent {
		f.onAcked(p)
	} else {
		f.remove(&f.lost, p)
	}
	p.state = packetAcked
}

// oldest returns the packet in flight whose last transmission is the oldest, or nil if none is in flight.
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

// overtaken reports whether a packet that was sent after p has been acknowledged.
func (f *flight) overtaken(p *packet) bool { return p.order < f.newest }

// reset forgets all packets. The next packet gets the number first.
func (f *flight) reset(first uint32) {
	clear(f.ring)
	*f = flight{ring: f.ring, base: first, next: first, fresh: first}
}
