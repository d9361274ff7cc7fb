package extended

import (
	"math/bits"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// minWindowWords is the minimum size, in words, of the bitmap of received packets.
const minWindowWords = shortWindow / 64

// ackEvery is the number of unacknowledged packets after which an ACK is sent at once (E26).
const ackEvery = 16

// ackBytes is the number of unacknowledged payload bytes after which an ACK is sent at once. It keeps a sender of large
// packets from reaching its limit of bytes in flight before it has sent ackEvery packets.
const ackBytes = 512 << 10

// arrivals records which packets were received from the peer, and when to acknowledge them.
type arrivals struct {
	// firstMissing is the lowest packet number not yet received. The field end is the number after the highest one
	// received.
	firstMissing, end uint32
	// bitmap holds one bit for each packet number from firstMissing up to end, which is set if the packet was received.
	// The number of bits is a power of two, and a packet number modulo it is the index of the bit. The bitmap grows, up
	// to window bits, as the numbers received require.
	bitmap     []uint64
	window     uint32  // packets at this distance from firstMissing or further are dropped
	rangesFrom uint32  // where the ranges of the next ACK start, if the last ACK could not hold all
	newestAt   Instant // arrival time of the most recently sent packet
	peerClock  uint32  // send time of that packet by the peer's clock, or 0 if unknown
	probeLen   uint32  // payload length of the probe to be answered by the next ACK, or 0

	unackedPackets int32 // number of numbered packets received since the last acknowledgement
	ackNow         bool  // the next Flush must acknowledge
	needsFullAck   bool  // an ACK is needed even if Flush sends a numbered packet
	unackedBytes   int   // payload bytes of the unacknowledged packets
	unackedSince   Instant
}

func (a *arrivals) reset(first uint32, window int) {
	clear(a.bitmap)
	*a = arrivals{firstMissing: first, end: first, rangesFrom: first, bitmap: a.bitmap, window: uint32(window)}
}

// hasGaps reports whether a packet was received beyond a missing one.
func (a *arrivals) hasGaps() bool { return a.firstMissing != a.end }

// dropReason returns the reason to drop a packet with the given number, or ReasonNone.
func (a *arrivals) dropReason(number uint32) Reason {
	switch d := number - a.firstMissing; {
	case d >= 1<<31, d < a.end-a.firstMissing && a.has(number):
		return ReasonDuplicate
	case d >= a.window:
		return ReasonWindow
	}
	return ReasonNone
}

// bitFor returns the bitmap word that holds the bit for a packet number, and the index of the bit within that word.
func (a *arrivals) bitFor(number uint32) (word *uint64, bit uint32) {
	i := number & uint32(64*len(a.bitmap)-1)
	return &a.bitmap[i/64], i % 64
}

// has reports whether the packet with the given number was received. The number must be between firstMissing and end.
func (a *arrivals) has(number uint32) bool {
	word, bit := a.bitFor(number)
	return *word>>bit&1 != 0
}

// grow enlarges the bitmap to hold a bit for the packet at the given distance from the first missing one.
func (a *arrivals) grow(distance uint32) {
	old := *a
	n := max(minWindowWords, len(old.bitmap))
	for uint32(64*n) <= distance {
		n *= 2
	}
	a.bitmap = make([]uint64, n)
	for number := a.firstMissing; number != a.end; number++ {
		if old.has(number) {
			word, bit := a.bitFor(number)
			*word |= 1 << bit
		}
	}
}

// record records the receipt of a packet within the window, and reports whether it is out of order. payload is the
// number of payload bytes.
func (a *arrivals) record(now Instant, number, clock uint32, payload int) (disorder bool) {
	disorder = number != a.end || a.hasGaps()
	switch {
	case number != a.firstMissing:
		if distance := number - a.firstMissing; distance >= uint32(64*len(a.bitmap)) {
			a.grow(distance)
		}
		word, bit := a.bitFor(number)
		*word |= 1 << bit
		if int32(number-a.end) >= 0 {
			a.end = number + 1
		}
	case a.firstMissing == a.end:
		a.firstMissing++
		a.end = a.firstMissing
	default:
		a.firstMissing++
		for a.firstMissing != a.end && a.has(a.firstMissing) {
			word, bit := a.bitFor(a.firstMissing)
			*word &^= 1 << bit
			a.firstMissing++
		}
	}
	if a.unackedPackets == 0 {
		a.unackedSince = now
	}
	if a.peerClock == 0 || clock != 0 && int32(clock-a.peerClock) >= 0 { // a short header carries no clock
		a.newestAt, a.peerClock = now, clock
	}
	a.unackedPackets++
	a.unackedBytes += payload
	return disorder
}

// clearUnacked records that an ACK has just acknowledged all packets received so far.
func (a *arrivals) clearUnacked() {
	a.unackedPackets, a.unackedBytes, a.ackNow, a.needsFullAck = 0, 0, false, false
}

// appendRanges appends the ranges of packet numbers that were received beyond the first missing packet, but at most
// protocol.MaxAckRanges of them. If there are more, the next call continues after the last range reported, so that
// several ACKs together report all.
func (a *arrivals) appendRanges(to []protocol.Range) []protocol.Range {
	n := later(a.rangesFrom, a.firstMissing)
	for len(to) < protocol.MaxAckRanges {
		first := a.nextBit(n, 0)
		if first == a.end {
			n = a.firstMissing
			break
		}
		n = a.nextBit(first, ^uint64(0))
		to = append(to, protocol.Range{First: first, End: n})
	}
	a.rangesFrom = n
	return to
}

// nextBit returns the first packet number at or after n that was received or, if invert is all ones, the first that is
// missing. It returns end if there is no such number.
func (a *arrivals) nextBit(n uint32, invert uint64) uint32 {
	for n != a.end {
		word, bit := a.bitFor(n)
		step := min(64-bit, a.end-n)
		if at := uint32(bits.TrailingZeros64((*word ^ invert) >> bit)); at < step {
			return n + at
		}
		n += step
	}
	return n
}
