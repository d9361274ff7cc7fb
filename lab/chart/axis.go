package chart

import (
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
)

// logScale is a logarithmic axis from low to high. If low is 0, the axis starts at 0, although 0 has no logarithm.
// minPositive is the smallest positive value.
type logScale struct{ low, minPositive, high float64 }

// zeroShare is the share of the axis that lies between 0 and the smallest positive value.
const zeroShare = 0.08

// newLogScale returns a scale that covers the values. It extends the range at both ends by a factor of margin, or less
// if the values are close together.
func newLogScale(values []float64, margin float64) logScale {
	scale := logScale{minPositive: math.Inf(1)}
	zero := false
	for _, v := range values {
		if v > 0 {
			scale.minPositive, scale.high = min(scale.minPositive, v), max(scale.high, v)
		}
		zero = zero || v == 0
	}
	if scale.high == 0 { // no values
		scale.minPositive, scale.high = 1, 10
	}
	if scale.high < 1.1*scale.minPositive {
		scale.minPositive, scale.high = scale.minPositive/1.5, scale.high*1.5
	}
	margin = min(margin, math.Pow(scale.high/scale.minPositive, 0.05))
	scale.minPositive, scale.high = scale.minPositive/margin, scale.high*margin
	if !zero {
		scale.low = scale.minPositive
	}
	return scale
}

// Normalize returns the position of v on the axis, from 0 to 1.
func (s logScale) Normalize(_, _, v float64) float64 {
	if v <= 0 {
		return 0
	}
	part := math.Log(v/s.minPositive) / math.Log(s.high/s.minPositive)
	if s.low > 0 {
		return part
	}
	return zeroShare + (1-zeroShare)*part
}

// Unit is the unit of the values along an axis. It determines how numbers are formatted.
type Unit uint8

const (
	// Counts are plain numbers.
	Counts Unit = iota
	// Microseconds are times, formatted in ns, µs, ms or s.
	Microseconds
	// BytesPerSecond and PerSecond are rates, formatted with powers of 1000.
	BytesPerSecond
	PerSecond
	// MessageBytes are message lengths, formatted with powers of 1024.
	MessageBytes
	// Multiple is a ratio of two values.
	Multiple
)

func (u Unit) format(v float64) string {
	switch u {
	case Microseconds:
		return formatPrefixed(v*1e-6, 1e-9, 1000, "ns", "µs", "ms", "s")
	case BytesPerSecond:
		return formatPrefixed(v, 1, 1000, "B/s", "kB/s", "MB/s", "GB/s", "TB/s")
	case PerSecond:
		return formatPrefixed(v, 1, 1000, "/s", "k/s", "M/s", "G/s")
	case MessageBytes:
		return formatPrefixed(v, 1, 1024, "B", "KiB", "MiB", "GiB")
	case Multiple:
		return "× " + formatNumber(v)
	}
	return formatNumber(v)
}

// formatPrefixed formats v in the largest unit in which it is at least 1. The first unit is worth first, and each
// further unit is worth step times the unit before it.
func formatPrefixed(v, first, step float64, units ...string) string {
	v /= first
	i := 0
	for v >= step*(1-1e-9) && i < len(units)-1 {
		v /= step
		i++
	}
	return formatNumber(v) + "\u00a0" + units[i]
}

// formatNumber formats a number with at most three decimals, and with spaces between thousands.
func formatNumber(v float64) string {
	text := strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64)
	for i := len(strconv.Itoa(int(v))) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u00a0" + text[i:]
	}
	return text
}

// ticker places the ticks of a logarithmic axis at positive values, of which start is the lowest. values are the
// coordinates of the charted points along this axis.
type ticker struct {
	unit   Unit
	start  float64
	values []float64
}

// minTicks is the minimum number of labelled ticks that an axis should have.
const minTicks = 4

// Ticks returns the ticks up to high.
func (t ticker) Ticks(_, high float64) []plot.Tick {
	if t.unit == Counts && t.values != nil { // there are only a few values, and each matters
		return t.valueTicks(high)
	}
	var ticks []plot.Tick
	if t.unit == MessageBytes {
		return t.powersOf4(high)
	}
	for _, mantissas := range mantissaSteps {
		if ticks = t.decades(t.start, high, mantissas); len(ticks) >= minTicks {
			break
		}
	}
	return ticks
}

// labelShare is the minimum distance between labels, as a share of the axis.
const labelShare = 0.045

// valueTicks returns a tick for each value. A tick has a label unless it would overlap the previous label.
func (t ticker) valueTicks(high float64) []plot.Tick {
	ticks := make([]plot.Tick, len(t.values))
	labelled := math.Inf(-1)
	for i, v := range t.values {
		ticks[i].Value = v
		at := math.Log(v/t.start) / math.Log(high/t.start)
		if v == 0 || at-labelled >= labelShare {
			ticks[i].Label, labelled = t.unit.format(v), at
		}
	}
	return ticks
}

// powersOf4 returns ticks at the powers of 4 up to high. If there are many, it labels only every other one.
func (t ticker) powersOf4(high float64) (ticks []plot.Tick) {
	all := math.Log(high/t.start)/math.Log(4) < 2*minTicks
	for k := range 31 {
		v := math.Ldexp(1, 2*k)
		if v < t.start || v > high {
			continue
		}
		tick := plot.Tick{Value: v}
		if all || k%2 == 1 {
			tick.Label = t.unit.format(v)
		}
		ticks = append(ticks, tick)
	}
	return ticks
}

// mantissaSteps lists mantissas at which ticks can be placed, from the widest steps to the narrowest.
var mantissaSteps = [][]float64{{1}, {1, 3}, {1, 2, 5}, {1, 1.5, 2, 3, 4, 5, 7}, mantissaRange(0.5),
	mantissaRange(0.25),
	mantissaRange(0.1)}

func mantissaRange(by float64) (all []float64) {
	for i := range int(math.Round(9 / by)) {
		all = append(all, 1+float64(i)*by)
	}
	return all
}

// decades returns the ticks from low to high that have one of the mantissas. low must be positive.
func (t ticker) decades(low, high float64, mantissas []float64) (ticks []plot.Tick) {
	for e := math.Floor(math.Log10(low)); e <= math.Log10(high); e++ {
		for _, m := range mantissas {
			if v := m * math.Pow(10, e); v >= low*(1-1e-9) && v <= high*(1+1e-9) {
				ticks = append(ticks, plot.Tick{Value: v, Label: t.unit.format(v)})
			}
		}
	}
	return slices.Clip(ticks)
}
