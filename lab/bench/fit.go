package bench

import "math"

// fit is a straight line: y = intercept + slope × x.
type fit struct {
	intercept, slope float64
	// deviation is the root mean square of the points' relative deviations from the line.
	deviation float64
}

// fitLine returns the line that minimizes the sum of the squared relative deviations; they are relative because sizes
// and times span many orders of magnitude. It reports false if there are fewer than three points or all x are equal.
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
	// If all x are equal, d would be 0 but for rounding errors.
	if len(x) < 3 || !(d > 1e-12*sw*sxx) {
		return fit{}, false
	}
	f := fit{slope: (sw*sxy - sx*sy) / d}
	f.intercept = (sy - f.slope*sx) / sw
	var sum float64
	for i := range x {
		off := (f.valueAt(x[i]) - y[i]) / y[i]
		sum += off * off
	}
	f.deviation = math.Sqrt(sum / float64(len(x)))
	return f, true
}

func (f fit) valueAt(x float64) float64 { return f.intercept + f.slope*x }
