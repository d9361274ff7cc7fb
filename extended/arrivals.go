package extended

import (
	"math/bits"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// ackEvery is how many packets are acknowledged at once (E26).
const ackEvery = 16

// ackBytes is how many bytes of payload are, so that a window of few large
// packets does not run dry.
const ackBytes = 512 << 10

// arrivals knows which packets of the peer have arrived, and what it is to be
// advertised of that.
type arrivals struct {
	// next is the first number that is missing, end the one after the highest
	// that has arrived.
	next, end uint32
	bitmap    [maxWindow / 64]uint64 // from next up to end, by number modulo its size
	newest    Instant                // when the one arrived that was sent last
	clock     uint32                 // when that was, by the peer's clock; 0 if there is none

	unacknowledged int  // numbered packets since the last acknowledgement
	bytes          int  // of their payload
	now            bool // to be acknowledged with the next Flush
	full           bool // and by an ACK, whatever else goes out
	since          Instant
}

func (a *arrivals) reset(first uint32) { *a = arrivals{next: first, end: first} }

// gaps reports whether packets beyond a missing one have arrived.
func (a *arrivals) gaps() bool { return a.next != a.end }

// outcome of a packet number, before it is taken.
func (a *arrivals) check(number uint32) Reason {
	switch d := number - a.next; {
	case d >= 1<<31, d < maxWindow && a.has(number):
		return ReasonDuplicate
	case d >= maxWindow:
		return ReasonWindow
	}
	return ReasonNone
}

func (a *arrivals) has(number uint32) bool {
	i := number % maxWindow
	return a.bitmap[i/64]&(1<<(i%64)) != 0
}

// take notes that a packet within the window has arrived, with that clock and so many
// bytes of payload, and reports whether it came out of order.
func (a *arrivals) take(now Instant, number, clock uint32, payload int) (disorder bool) {
	disorder = number != a.end || a.gaps()
	i := number % maxWindow
	switch {
	case number != a.next:
		a.bitmap[i/64] |= 1 << (i % 64)
		if int32(number-a.end) >= 0 {
			a.end = number + 1
		}
	case a.next == a.end:
		a.next++
		a.end = a.next
	default:
		a.next++
		for a.next != a.end && a.has(a.next) {
			i = a.next % maxWindow
			a.bitmap[i/64] &^= 1 << (i % 64)
			a.next++
		}
	}
	if a.unacknowledged == 0 {
		a.since = now
	}
	if a.clock == 0 || int32(clock-a.clock) >= 0 {
		a.newest, a.clock = now, clock
	}
	a.unacknowledged++
	a.bytes += payload
	return disorder
}

// advertised notes that everything was acknowledged.
func (a *arrivals) advertised() {
	a.unacknowledged, a.bytes, a.now, a.full = 0, 0, false, false
}

// ranges appends the runs of packets beyond the first missing one, at most
// protocol.MaxAckRanges.
func (a *arrivals) ranges(to []protocol.Range) []protocol.Range {
	for n := a.next; len(to) < protocol.MaxAckRanges; {
		first := a.find(n, 0)
		if first == a.end {
			break
		}
		n = a.find(first, ^uint64(0))
		to = append(to, protocol.Range{First: first, End: n})
	}
	return to
}

// find returns the first number from n on that has arrived, or with an invert of
// all ones the first that has not; end if there is none.
func (a *arrivals) find(n uint32, invert uint64) uint32 {
	for n != a.end {
		i := n % maxWindow
		word := (a.bitmap[i/64] ^ invert) >> (i % 64)
		step := min(64-i%64, a.end-n)
		if at := uint32(bits.TrailingZeros64(word)); at < step {
			return n + at
		}
		n += step
	}
	return n
}
