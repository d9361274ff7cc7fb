package pcapng

import (
	"math/bits"
	"time"
)

// ngClock is how an interface of a pcapng file counts time.
type ngClock struct {
	// second is how many ticks a second has.
	second uint64
	// offset is to be added, in seconds.
	offset int64
}

// maxDecimalDigits is the largest power of ten that fits 64 bits.
const maxDecimalDigits = 19

// defaultClock counts microseconds, as a file means that says nothing.
func defaultClock() ngClock { return ngClock{second: 1e6} }

// setResolution takes the value of the option if_tsresol, and reports whether a
// 64-bit clock can have it.
func (c *ngClock) setResolution(v byte) bool {
	digits, base, most := v&0x7f, uint64(10), byte(maxDecimalDigits)
	if v&0x80 != 0 {
		base, most = 2, 63
	}
	if digits > most {
		return false
	}
	c.second = 1
	for range digits {
		c.second *= base
	}
	return true
}

// time returns the time of a tick, to the nanosecond.
func (c *ngClock) time(ticks uint64) time.Time {
	hi, lo := bits.Mul64(ticks%c.second, 1e9)
	ns, _ := bits.Div64(hi, lo, c.second)
	return time.Unix(int64(ticks/c.second)+c.offset, int64(ns)).UTC()
}
