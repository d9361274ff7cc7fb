package demo

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// text prints the report for people.
func (r *report) text(out io.Writer) error {
	w := bufio.NewWriter(out) // it keeps the error of a line for Flush
	fmt.Fprintf(w, "%s: %s", r.Example, Count(r.Ranks, "rank"))
	if len(r.Profiles) > 0 {
		fmt.Fprintf(w, ", profile %s", strings.Join(r.Profiles, " and "))
	}
	fmt.Fprintf(w, ", %s\n", r.Where)
	if r.Result == nil {
		fmt.Fprintf(w, "rank %d has done its part; rank 0 has the result\n", r.Rank)
		return w.Flush()
	}
	r.Result.Table(w)
	return w.Flush()
}

// Count is a number of things: "1 rank", "2 ranks".
func Count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// Times are what several runs of one thing took, in microseconds.
type Times struct {
	Min    float64 `json:"min_us"`
	Median float64 `json:"median_us"`
	Max    float64 `json:"max_us"`
}

// TimesOf sums up times, of which there is at least one. It sorts them.
func TimesOf(d []time.Duration) Times {
	slices.Sort(d)
	n := len(d)
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	return Times{us(d[0]), (us(d[(n-1)/2]) + us(d[n/2])) / 2, us(d[n-1])}
}

// Millis is a time in milliseconds.
func Millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
