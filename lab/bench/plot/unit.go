package plot

import (
	"math"
	"strconv"
)

// Unit says how the numbers of an axis are written.
type Unit uint8

const (
	// Count is a number of things.
	Count Unit = iota
	// Microseconds are written in ns, µs, ms or s.
	Microseconds
	// Bytes per second are written in powers of 1000, and BinaryBytes, the
	// length of a message, in powers of 1024.
	Bytes
	BinaryBytes
	// PerSecond is a number of things in a second, in powers of 1000.
	PerSecond
	// Multiple is how many times something else it is.
	Multiple
)

// format writes a number with its unit.
func (u Unit) format(v float64) string {
	switch u {
	case Microseconds:
		return prefixed(v*1e-6, 1e-9, 1000, "ns", "µs", "ms", "s")
	case Bytes:
		return prefixed(v, 1, 1000, "B/s", "kB/s", "MB/s", "GB/s", "TB/s")
	case PerSecond:
		return prefixed(v, 1, 1000, "/s", "k/s", "M/s", "G/s")
	case Multiple:
		return "× " + number(v)
	case BinaryBytes:
		return prefixed(v, 1, 1024, "B", "KiB", "MiB", "GiB")
	}
	return number(v)
}

// prefixed writes v in the largest of the units in which it is at least 1. The
// first unit is worth first, and each is worth step of the one before.
func prefixed(v, first, step float64, units ...string) string {
	v /= first
	i := 0
	for v >= step*(1-1e-9) && i < len(units)-1 {
		v /= step
		i++
	}
	return number(v) + " " + units[i]
}

// number writes a number of few digits, with blanks between thousands.
func number(v float64) string {
	if v >= 1 || v == 0 {
		text := strconv.FormatFloat(math.Round(v), 'f', -1, 64)
		for i := len(text) - 3; i > 0; i -= 3 {
			text = text[:i] + "\u00a0" + text[i:]
		}
		return text
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
