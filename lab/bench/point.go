package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Point holds the figures measured in a step. Times are in microseconds. Figures that the workload does not measure are
// 0.
type Point struct {
	N int `json:"n"`
	// P50, P99, P999 and Least describe the time of a message: half a round trip, a hop, or the duration of a window
	// divided by the number of its messages.
	P50   float64 `json:"p50_us,omitempty"`
	P99   float64 `json:"p99_us,omitempty"`
	P999  float64 `json:"p999_us,omitempty"`
	Least float64 `json:"least_us,omitempty"`
	// Unload is the time that it takes to empty a queue of posted receives.
	Unload float64 `json:"unload_us,omitempty"`
	// Resting and Waiting are the processor usage of an idle and of a waiting rank, in percent.
	Resting float64 `json:"resting_percent,omitempty"`
	Waiting float64 `json:"waiting_percent,omitempty"`
	// CPU is the user and system time per message, summed over all processes.
	CPU float64 `json:"cpu_us,omitempty"`
}

// figures returns the point's figures with the names that the programs print.
func (p *Point) figures() []struct {
	name  string
	value *float64
} {
	return []struct {
		name  string
		value *float64
	}{
		{"p50", &p.P50}, {"p99", &p.P99}, {"p999", &p.P999}, {"least", &p.Least},
		{"unload", &p.Unload}, {"resting", &p.Resting}, {"waiting", &p.Waiting}, {"cpu", &p.CPU},
	}
}

// figure returns a pointer to the figure with the given name, or nil.
func (p *Point) figure(name string) *float64 {
	for _, f := range p.figures() {
		if f.name == name {
			return f.value
		}
	}
	return nil
}

// write prints the point in the format that parseOutput reads.
func (p *Point) write(out io.Writer) {
	var b strings.Builder
	fmt.Fprintf(&b, "point %d", p.N)
	for _, f := range p.figures() {
		fmt.Fprintf(&b, " %s %.4f", f.name, *f.value)
	}
	fmt.Fprintln(out, b.String())
}

// newPoint computes a point from the times measured in a step.
func newPoint(s step, times []time.Duration) Point {
	slices.Sort(times)
	n := len(times)
	return Point{
		N: s.n, P50: micros(times[n/2]), P99: micros(times[n*99/100]),
		P999: micros(times[n*999/1000]), Least: micros(times[0]),
	}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// medians returns the median of each figure over the rounds. All rounds must have the same steps.
func medians(rounds [][]Point) []Point {
	points := make([]Point, len(rounds[0]))
	for i := range points {
		points[i].N = rounds[0][i].N
		for k, f := range points[i].figures() {
			values := make([]float64, len(rounds))
			for r := range rounds {
				values[r] = *rounds[r][i].figures()[k].value
			}
			*f.value = median(values)
		}
	}
	return points
}

// median sorts values and returns their median. values must not be empty.
func median(values []float64) float64 {
	slices.Sort(values)
	half := len(values) / 2
	if len(values)%2 == 0 {
		return (values[half-1] + values[half]) / 2
	}
	return values[half]
}
