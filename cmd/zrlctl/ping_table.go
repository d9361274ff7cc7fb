package main

import (
	"fmt"
	"slices"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/internal/words"
)

// The columns have a fixed width, because each row is printed as soon as its series is complete.
const (
	tableHeader = "" +
		"               ROUND TRIP (µs)   |         OUT (µs)         |        BACK (µs)\n" +
		"RANK   WORDS      p50        max |  req-clr clr-dat dat-ack |  req-clr clr-dat dat-ack  VERIFIED\n"
	tableRow = "%4d %7d %8s %10s | %8s %7s %7s | %8s %7s %7s  %s\n"
)

// row returns the series as a row of the table.
func (s *series) row() string {
	var good []control.Trip
	late := 0
	for _, t := range s.trips {
		late += t.SkippedMessages
		if t.Verified {
			good = append(good, t)
		}
	}
	verified := fmt.Sprintf("%d/%d", len(good), len(s.trips))
	if late > 0 {
		verified += fmt.Sprintf(" (%s skipped)", words.Plural(late, "late message"))
	}
	if len(good) == 0 {
		return fmt.Sprintf(tableRow, s.to, s.words, "-", "-", "-", "-", "-", "-", "-", "-", verified)
	}
	of := func(f func(control.Trip) control.Micros) []float64 {
		values := make([]float64, len(good))
		for i, t := range good {
			values[i] = float64(f(t))
		}
		slices.Sort(values)
		return values
	}
	total := of(func(t control.Trip) control.Micros { return t.RoundTrip })
	// For an eager message there are no such steps, so the value is 0.
	step := func(f func(control.Trip) control.Micros) string {
		if v := median(of(f)); v > 0 {
			return fmt.Sprintf("%.1f", v)
		}
		return "-"
	}
	return fmt.Sprintf(tableRow, s.to, s.words, fmt.Sprintf("%.1f", median(total)),
		fmt.Sprintf("%.1f", total[len(total)-1]),
		step(func(t control.Trip) control.Micros { return t.SendPhases.RequestToClear }),
		step(func(t control.Trip) control.Micros { return t.SendPhases.ClearToData }),
		step(func(t control.Trip) control.Micros { return t.SendPhases.DataToAck }),
		step(func(t control.Trip) control.Micros { return t.EchoPhases.RequestToClear }),
		step(func(t control.Trip) control.Micros { return t.EchoPhases.ClearToData }),
		step(func(t control.Trip) control.Micros { return t.EchoPhases.DataToAck }), verified)
}

// median returns the median of sorted, which must not be empty.
func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// firstError returns the first error of the series, or nil if all round trips succeeded.
func (s *series) firstError() error {
	if s.err != nil {
		return fmt.Errorf("rank %d, %s: %w", s.to, words.Plural(s.words, "word"), s.err)
	}
	bad := slices.DeleteFunc(slices.Clone(s.trips), func(t control.Trip) bool { return t.Error == "" })
	if len(bad) == 0 {
		return nil
	}
	text, first := "", &control.Error{Message: bad[0].Error, Kind: bad[0].Kind}
	if len(bad) > 1 {
		text = fmt.Sprintf("%d failures, the first: ", len(bad))
	}
	return fmt.Errorf("rank %d, %s: %s%w", s.to, words.Plural(s.words, "word"), text, first)
}
