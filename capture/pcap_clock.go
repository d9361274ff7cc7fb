package capture

import (
	"math/bits"
	"time"
)

// ngClock is how an interface of a pcapng file counts time.
type ngClock struct {
	// binary distinguishes ticks of 2^-digits seconds from ticks of 10^-digits.
	binary bool
	digits uint8
	// second is how many ticks a second has, for decimal clocks.
	second uint64
	// offset is to be added, in seconds.
	offset int64
}

// maxDecimalDigits is the largest power of ten that fits 64 bits.
const maxDecimalDigits = 19

// defaultClock counts microseconds, as a file means that says nothing.
func defaultClock() ngClock { return ngClock{digits: 6, second: 1e6} }

// setResolution takes the value of the option if_tsresol, and reports whether a
// 64-bit clock can have it.
func (c *ngClock) setResolution(v byte) bool {
	c.binary, c.digits = v&0x80 != 0, v&0x7f
	if c.binary {
		return c.digits < 64
	}
	if c.digits > maxDecimalDigits {
		return false
	}
	c.second = pow10(c.digits)
	return true
}

// time returns the time of a tick, to the nanosecond.
func (c *ngClock) time(ticks uint64) time.Time {
	var sec, ns uint64
	switch {
	case c.binary:
		sec = ticks >> c.digits
		hi, lo := bits.Mul64(ticks-sec<<c.digits, 1e9)
		ns = hi<<(64-c.digits) | lo>>c.digits
	case c.digits <= 9:
		sec = ticks / c.second
		ns = ticks % c.second * (1e9 / c.second)
	default:
		sec = ticks / c.second
		ns = ticks % c.second / (c.second / 1e9)
	}
	return time.Unix(int64(sec)+c.offset, int64(ns)).UTC()
}

func pow10(n uint8) uint64 {
	v := uint64(1)
	for range n {
		v *= 10
	}
	return v
}
