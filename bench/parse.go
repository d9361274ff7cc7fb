package main

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"strings"
)

// point is what a step has given. Times are in microseconds.
type point struct {
	N int `json:"n"`
	// P50 and P99 are of half the round trip.
	P50 float64 `json:"half_p50_us"`
	P99 float64 `json:"half_p99_us"`
	// Unload is the time to empty the queue; 0 in other workloads.
	Unload float64 `json:"unload_us"`
}

const (
	pointFormat    = "point %d p50 %f p99 %f unload %f\n"
	verifiedFormat = "verified %d\n"
)

// parseOutput reads what rank 0 has printed, in Go or C: a line for each step, in
// order, and at last how many messages were verified. Other lines, with which a
// launcher may surround them, are not read. Anything else is an error: a program
// that ended early has measured nothing.
func parseOutput(out []byte, w *workload, steps []step) ([]point, error) {
	var points []point
	verified := -1
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		line := strings.TrimRight(lines.Text(), "\r") + "\n"
		switch {
		case strings.HasPrefix(line, "point "):
			var p point
			if _, err := fmt.Sscanf(line, pointFormat, &p.N, &p.P50, &p.P99, &p.Unload); err != nil {
				return nil, fmt.Errorf("line %q: %w", line, err)
			}
			for _, v := range []float64{p.P50, p.P99, p.Unload} {
				if !(v >= 0) || math.IsInf(v, 0) {
					return nil, fmt.Errorf("line %q: a time is 0 or more", line)
				}
			}
			if p.P50 == 0 {
				return nil, fmt.Errorf("line %q: a message that takes no time", line)
			}
			points = append(points, p)
		case strings.HasPrefix(line, "verified "):
			if _, err := fmt.Sscanf(line, verifiedFormat, &verified); err != nil {
				return nil, fmt.Errorf("line %q: %w", line, err)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(points) != len(steps) {
		return nil, fmt.Errorf("%d figures for %d steps", len(points), len(steps))
	}
	for i, p := range points {
		if p.N != steps[i].n {
			return nil, fmt.Errorf("figure %d is of %d %s and not of %d", i+1, p.N, w.unit, steps[i].n)
		}
	}
	if want := w.total(steps); verified != want {
		return nil, fmt.Errorf("%d messages were verified of %d", max(verified, 0), want)
	}
	return points, nil
}
