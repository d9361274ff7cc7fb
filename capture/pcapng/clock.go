package pcapng

import (
	"math/bits"
	"time"
)

// ngClock describes the clock of an interface in a pcapng file.
type ngClock struct {
	ticksPerSecond uint64
	// offset is the number of seconds to be added to each time stamp of the interface.
	offset int64
}

// maxDecimalDigits is the largest exponent for which the power of ten fits in 64 bits.
const maxDecimalDigits = 19

// defaultClock returns a clock with a resolution of one microsecond, the default of the format.
func defaultClock() ngClock { return ngClock{ticksPerSecond: 1e6} }

// setResolution applies the value of option if_tsresol. It returns false if the resolution does not fit in 64 bits.
func (c *ngClock) setResolution(v byte) bool {
	digits, base, most := v&0x7f, uint64(10), byte(maxDecimalDigits)
	if v&0x80 != 0 {
		base, most = 2, 63
	}
	if digits > most {
		return false
	}
	c.ticksPerSecond = 1
	for range digits {
		c.ticksPerSecond *= base
	}
	return true
}

// toTime converts a time stamp in ticks of the clock to a time, rounded down to the nanosecond.
func (c *ngClock) toTime(ticks uint64) time.Time {
	hi, lo := bits.Mul64(ticks%c.ticksPerSecond, 1e9)
	ns, _ := bits.Div64(hi, lo, c.ticksPerSecond)
	return time.Unix(int64(ticks/c.ticksPerSecond)+c.offset, int64(ns)).UTC()
}
