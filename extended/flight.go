package extended

import (
	"math/bits"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// packet is a numbered packet of ours, from its first transmission until it and
// all before it are acknowledged.
type packet struct {
	header          protocol.ExtHeader
	message         *outbound // the message whose payload it carries, if any
	payload         int32
	retransmissions uint16
	state           packetState
	// fetched: the network does not carry the payload (LongPackets).
	fetched bool
	// before and after are the neighbours' numbers in the list that it is in.
	before, after uint32
	// order counts transmissions: that of the last one of this packet.
	order uint64
	sent  Instant
}

// carried is how many bytes of payload count as in flight.
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

// flight holds the packets from base, the first that is not acknowledged, up to
// next, the number that the next new one gets. Their ring grows with the window.
type flight struct {
	ring       []packet // a power of two
	base, next uint32
	// beyond has a bit for each packet of ring that was acknowledged while base was not. It
	// is made when there is one.
	beyond []uint64
	// Those in flight that were sent once are in the order of their numbers,
	// none of them before fresh; again are the others, in the order of their
	// last transmission. lost are those to be retransmitted.
	fresh       uint32
	again, lost list
	began       uint32 // the packet that began the last message
	count       int    // packets in flight
	bytes       int64  // of their payload, as far as the network carries it
	order       uint64
	// newest is the highest order that was acknowledged, and newestSent when the last of the
	// packets that were was sent.
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

// outstanding is how many numbers are in use.
func (f *flight) outstanding() int { return int(f.next - f.base) }

// empty reports whether no packet is in flight or to be retransmitted.
func (f *flight) empty() bool { return f.count == 0 && f.lost.count == 0 }

// add makes room for a new packet and gives it the next number. It is in no list
// yet.
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

// bit returns the word of beyond for a number, and its bit in it.
func (f *flight) bit(number uint32) (word *uint64, bit uint32) {
	i := number & uint32(len(f.ring)-1)
	return &f.beyond[i/64], i % 64
}

// ackedBeyond notes that a packet was acknowledged, which is not the first.
func (f *flight) ackedBeyond(number uint32) {
	if f.beyond == nil {
		f.beyond = make([]uint64, max(len(f.ring)/64, 1))
	}
	word, bit := f.bit(number)
	*word |= 1 << bit
}

// passed notes that base, which was acknowledged before, is to be the next number.
func (f *flight) passed() {
	word, bit := f.bit(f.base)
	*word &^= 1 << bit
}

// unacked returns the first number from n up to end that is not acknowledged, or end.
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

// append puts a packet at the end of the list l.
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

// remove takes a packet out of the list l, in which it is.
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

// transmitted notes that a packet, which is in no list, is sent. One that was sent
// before goes into again.
func (f *flight) transmitted(now Instant, p *packet) {
	f.order++
	f.count++
	f.bytes += p.carried()
	p.order, p.sent, p.state = f.order, now, packetSent
}

// onAcked takes a packet out of those in flight.
func (f *flight) onAcked(p *packet) {
	f.count--
	f.bytes -= p.carried()
	if p.retransmissions > 0 {
		f.remove(&f.again, p)
	}
}

// lose moves a packet from those in flight to those that are to be retransmitted.
func (f *flight) lose(p *packet) {
	f.onAcked(p)
	p.state = packetLost
	f.append(&f.lost, p)
}

// acked takes a packet out of its list.
func (f *flight) acked(p *packet) {
	if p.state == packetSent {
		f.onAcked(p)
	} else {
		f.remove(&f.lost, p)
	}
	p.state = packetAcked
}

// oldest returns the packet in flight that was sent the longest ago, or nil.
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

// overtaken reports whether one that was sent later than a packet has been acknowledged.
func (f *flight) overtaken(p *packet) bool { return p.order < f.newest }

// reset forgets everything; the next packet is number first.
func (f *flight) reset(first uint32) {
	clear(f.ring)
	*f = flight{ring: f.ring, base: first, next: first, fresh: first}
}
