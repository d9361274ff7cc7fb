package extended

import (
	"math/bits"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// minWindowWords is the least size of the bitmap.
const minWindowWords = shortWindow / 64

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
	// bitmap has the numbers from next up to end, modulo its size, a power of two. It grows as
	// packets arrive that are further apart, up to window.
	bitmap []uint64
	window uint32  // how far beyond next a packet is taken
	from   uint32  // where the ranges of the next ACK begin, if they did not fit into the last
	newest Instant // when the one arrived that was sent last
	clock  uint32  // when that was, by the peer's clock; 0 if there is none
	probe  uint32  // payload of the probe that the next ACK answers, or 0

	unacknowledged int32 // numbered packets since the last acknowledgement
	now            bool  // to be acknowledged with the next Flush
	full           bool  // and by an ACK, whatever else goes out
	bytes          int   // of the payload of those packets
	since          Instant
}

func (a *arrivals) reset(first uint32, window int) {
	clear(a.bitmap)
	*a = arrivals{next: first, end: first, from: first, bitmap: a.bitmap, window: uint32(window)}
}

// gaps reports whether packets beyond a missing one have arrived.
func (a *arrivals) gaps() bool { return a.next != a.end }

// outcome of a packet number, before it is taken.
func (a *arrivals) check(number uint32) Reason {
	switch d := number - a.next; {
	case d >= 1<<31, d < a.end-a.next && a.has(number):
		return ReasonDuplicate
	case d >= a.window:
		return ReasonWindow
	}
	return ReasonNone
}

// place returns the word of a number, and its bit in it.
func (a *arrivals) place(number uint32) (word *uint64, bit uint32) {
	i := number & uint32(64*len(a.bitmap)-1)
	return &a.bitmap[i/64], i % 64
}

// has reports whether a packet between next and end has arrived.
func (a *arrivals) has(number uint32) bool {
	word, bit := a.place(number)
	return *word>>bit&1 != 0
}

// grow makes room for a packet so far from the first that is missing.
func (a *arrivals) grow(distance uint32) {
	old := *a
	n := max(minWindowWords, len(old.bitmap))
	for uint32(64*n) <= distance {
		n *= 2
	}
	a.bitmap = make([]uint64, n)
	for number := a.next; number != a.end; number++ {
		if old.has(number) {
			word, bit := a.place(number)
			*word |= 1 << bit
		}
	}
}

// take notes that a packet within the window has arrived, with that clock and so many
// bytes of payload, and reports whether it came out of order.
func (a *arrivals) take(now Instant, number, clock uint32, payload int) (disorder bool) {
	disorder = number != a.end || a.gaps()
	switch {
	case number != a.next:
		if distance := number - a.next; distance >= uint32(64*len(a.bitmap)) {
			a.grow(distance)
		}
		word, bit := a.place(number)
		*word |= 1 << bit
		if int32(number-a.end) >= 0 {
			a.end = number + 1
		}
	case a.next == a.end:
		a.next++
		a.end = a.next
	default:
		a.next++
		for a.next != a.end && a.has(a.next) {
			word, bit := a.place(a.next)
			*word &^= 1 << bit
			a.next++
		}
	}
	if a.unacknowledged == 0 {
		a.since = now
	}
	if a.clock == 0 || clock != 0 && int32(clock-a.clock) >= 0 { // a short header has none
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
// protocol.MaxAckRanges. If there are more, the next call goes on behind them, so that each is
// reported in one ACK of several.
func (a *arrivals) ranges(to []protocol.Range) []protocol.Range {
	n := later(a.from, a.next)
	for len(to) < protocol.MaxAckRanges {
		first := a.find(n, 0)
		if first == a.end {
			n = a.next
			break
		}
		n = a.find(first, ^uint64(0))
		to = append(to, protocol.Range{First: first, End: n})
	}
	a.from = n
	return to
}

// find returns the first number from n on that has arrived, or with an invert of
// all ones the first that has not; end if there is none.
func (a *arrivals) find(n uint32, invert uint64) uint32 {
	for n != a.end {
		word, bit := a.place(n)
		step := min(64-bit, a.end-n)
		if at := uint32(bits.TrailingZeros64((*word ^ invert) >> bit)); at < step {
			return n + at
		}
		n += step
	}
	return n
}
