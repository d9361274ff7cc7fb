package twolevel

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/lab/sim"
)

// Design is a queue design measured in the source.
type Design struct {
	Name  string
	Lists int
	// MHz is the clock frequency stated in the source.
	MHz float64
}

// Designs returns the designs in the source.
func Designs() []Design {
	return []Design{{"two-level", 1, 321.3}, {"parallel-4", 4, 234}, {"parallel-64", 64, 168}}
}

// Nanoseconds converts a number of cycles to nanoseconds.
func (d Design) Nanoseconds(cycles sim.Cycle) float64 { return float64(cycles) * 1000 / d.MHz }

// BenchResult is the result of a benchmark.
type BenchResult struct {
	Cycles sim.Cycle
	Events uint64
}

// MaxDepth is the maximum number of posted receives.
const MaxDepth = CAMEntries + ListEntries

// Preposted runs the preposted latency benchmark, which searches for the last of depth posted receives.
func (d Design) Preposted(depth int) (BenchResult, error) { return d.runMatches(depth, 1) }

// Unload runs the unload benchmark, which matches the last posted receive again and again, until none of depth is left.
func (d Design) Unload(depth int) (BenchResult, error) { return d.runMatches(depth, depth) }

// runMatches posts depth receives, and then matches the given number of them, beginning with the last.
func (d Design) runMatches(depth, matches int) (BenchResult, error) {
	if depth < 1 || depth > MaxDepth {
		return BenchResult{}, fmt.Errorf("depth %d: must be 1 to %d", depth, MaxDepth)
	}
	queue, err := New(d.Lists)
	if err != nil {
		return BenchResult{}, err
	}
	commands := make([]Command, depth, depth+matches)
	for i := range commands {
		commands[i] = Command{Insert: true, Header: uint64(i)}
	}
	for i := range matches {
		commands = append(commands, Command{Header: uint64(depth - 1 - i)})
	}
	var result BenchResult
	for i, o := range queue.Execute(commands...) {
		if !o.OK {
			return BenchResult{}, fmt.Errorf("command %d failed at depth %d: an error of the model", i, depth)
		}
		if i >= depth {
			result.Cycles += o.Cycles
		}
	}
	result.Events = queue.Events()
	return result, nil
}
