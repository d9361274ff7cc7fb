package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// newPoint sums a step up.
func newPoint(s step, half []time.Duration, unload time.Duration) point {
	slices.Sort(half)
	n := len(half)
	return point{N: s.n, P50: micros(half[n/2]), P99: micros(half[n*99/100]), Unload: micros(unload)}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// write prints the point as parseOutput reads it.
func (p point) write(out io.Writer) {
	fmt.Fprintf(out, "point %d p50 %.4f p99 %.4f unload %.4f\n", p.N, p.P50, p.P99, p.Unload)
}

// median returns the median of what a value is in several rounds.
func median(rounds [][]point, i int, value func(point) float64) float64 {
	values := make([]float64, len(rounds))
	for r := range rounds {
		values[r] = value(rounds[r][i])
	}
	slices.Sort(values)
	half := len(values) / 2
	if len(values)%2 == 0 {
		return (values[half-1] + values[half]) / 2
	}
	return values[half]
}

// medians returns the medians over the rounds, of each figure for itself.
func medians(rounds [][]point) []point {
	points := make([]point, len(rounds[0]))
	for i := range points {
		points[i] = point{
			N:      rounds[0][i].N,
			P50:    median(rounds, i, func(p point) float64 { return p.P50 }),
			P99:    median(rounds, i, func(p point) float64 { return p.P99 }),
			Unload: median(rounds, i, func(p point) float64 { return p.Unload }),
		}
	}
	return points
}
