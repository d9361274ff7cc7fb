package bench

import "math"

// fit is a straight line: y = intercept + slope × x.
type fit struct {
	intercept, slope float64
	// deviation is the root mean square of how far points are from the line, as
	// a part of them.
	deviation float64
}

// fitLine is the line for which the sum of the squares of relative deviations is
// least: sizes and times are of many magnitudes, and each of them is to count.
// There is none for fewer than three points, which say nothing of a line.
func fitLine(x, y []float64) (fit, bool) {
	var sw, sx, sy, sxx, sxy float64
	for i := range x {
		if !(y[i] > 0) {
			return fit{}, false
		}
		w := 1 / (y[i] * y[i])
		sw += w
		sx += w * x[i]
		sy += w * y[i]
		sxx += w * x[i] * x[i]
		sxy += w * x[i] * y[i]
	}
	d := sw*sxx - sx*sx
	// What is left of equal places by rounding is no difference.
	if len(x) < 3 || !(d > 1e-12*sw*sxx) {
		return fit{}, false
	}
	f := fit{slope: (sw*sxy - sx*sy) / d}
	f.intercept = (sy - f.slope*sx) / sw
	var sum float64
	for i := range x {
		off := (f.at(x[i]) - y[i]) / y[i]
		sum += off * off
	}
	f.deviation = math.Sqrt(sum / float64(len(x)))
	return f, true
}

func (f fit) at(x float64) float64 { return f.intercept + f.slope*x }
