package twolevel

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/lab/sim"
)

// Design is a queue design that the source measured.
type Design struct {
	Name  string
	Lists int
	// MHz is the clock frequency reported by the source.
	MHz float64
}

// Designs returns the source's designs.
func Designs() []Design {
	return []Design{{"two-level", 1, 321.3}, {"parallel-4", 4, 234}, {"parallel-64", 64, 168}}
}

// Nanoseconds returns the duration of cycles.
func (d Design) Nanoseconds(cycles sim.Cycle) float64 { return float64(cycles) * 1000 / d.MHz }

// Measured is the cost of a benchmark.
type Measured struct {
	Cycles sim.Cycle
	Events uint64
}

// MaxDepth is the maximum number of posted receives.
const MaxDepth = CAM + ListEntries

// Preposted runs the preposted latency benchmark: the search for the last of depth posted receives.
func (d Design) Preposted(depth int) (Measured, error) { return d.unload(depth, 1) }

// Unload runs the unload benchmark, which matches the last of depth posted receives until the queue is empty.
func (d Design) Unload(depth int) (Measured, error) { return d.unload(depth, depth) }

// unload posts depth receives and then matches the given number of them, last first.
func (d Design) unload(depth, matches int) (Measured, error) {
	if depth < 1 || depth > MaxDepth {
		return Measured{}, fmt.Errorf("depth %d: must be 1 to %d", depth, MaxDepth)
	}
	q, err := New(d.Lists)
	if err != nil {
		return Measured{}, err
	}
	commands := make([]Command, depth, depth+matches)
	for i := range commands {
		commands[i] = Command{Insert: true, Header: uint64(i)}
	}
	for i := range matches {
		commands = append(commands, Command{Header: uint64(depth - 1 - i)})
	}
	var m Measured
	for i, o := range q.Do(commands...) {
		if !o.OK {
			return Measured{}, fmt.Errorf("command %d failed at depth %d: an error of the model", i, depth)
		}
		if i >= depth {
			m.Cycles += o.Cycles
		}
	}
	m.Events = q.Events()
	return m, nil
}
