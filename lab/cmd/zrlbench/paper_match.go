package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/lab/sim"
	"github.com/zrlmpi/zrlmpid/lab/sim/twolevel"
	"github.com/zrlmpi/zrlmpid/mpe/match"
)

// matchBenchmarks lists the benchmarks of the command "paper match". Each exists in two forms: for a hardware design
// and for the engine.
var matchBenchmarks = map[string]struct {
	simulate func(twolevel.Design, int) (twolevel.BenchResult, error)
	measure  func(m *match.Matcher[int, int], depth int) (time.Duration, error)
}{
	"preposted": {twolevel.Design.Preposted, matchLast},
	"unload":    {twolevel.Design.Unload, matchAll},
}

func (a *app) paperMatchCommand() *cobra.Command {
	var benchmark, svg string
	var depths []int
	var engine bool
	cmd := &cobra.Command{
		Use: "match", Short: "Simulate message matching in hardware, and compare it with the engine", Args: cobra.NoArgs,
		Long: `Simulate the two-level queue of Xiong, Skjellum and Herbordt, Accelerating MPI Message Matching
Through FPGA Offload (2018), with 1, 4 and 64 lists at the clocks of the paper, and measure the
matching of this engine in the same run. Benchmarks:
  preposted  the last of DEPTH posted receives is matched. The engine posts it again each time
  unload     the last posted receive is matched until the queue is empty; the time covers all matches
The times exclude network and processor.`,
		Example: "  zrlbench paper match --benchmark unload --depths 256,1000,30000",
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, ok := matchBenchmarks[benchmark]
			if !ok {
				return usagef("--benchmark %q: must be preposted or unload", benchmark)
			}
			var results []simulatedMatch
			for _, depth := range depths {
				if depth < 1 || depth > twolevel.MaxDepth {
					return usagef("--depths: depth %d: must be 1 to %d", depth, twolevel.MaxDepth)
				}
				result := simulatedMatch{Benchmark: benchmark, Depth: depth}
				for _, design := range twolevel.Designs() {
					if err := cmd.Context().Err(); err != nil {
						return err
					}
					m, err := b.simulate(design, depth)
					if err != nil {
						return err
					}
					result.Designs = append(result.Designs,
						simulatedDesign{design.Name, design.Lists, design.MHz, m.Cycles, design.Nanoseconds(m.Cycles), m.Events})
				}
				if engine {
					ns, err := measureEngine(depth, b.measure)
					if err != nil {
						return err
					}
					result.Engine = &ns
				}
				results = append(results, result)
			}
			if err := drawAll(svg, matchChart(benchmark, results)); err != nil {
				return err
			}
			if a.json {
				return writeJSON(cmd.OutOrStdout(), results)
			}
			return writeMatches(cmd.OutOrStdout(), results)
		},
	}
	cmd.Flags().StringVar(&benchmark, "benchmark", "preposted", "preposted or unload")
	cmd.Flags().IntSliceVar(&depths, "depths", []int{1, 64, 256, 257, 300, 500, 1000, 3000, 10000, 30000},
		fmt.Sprintf("posted receives, 1 to %d", twolevel.MaxDepth))
	cmd.Flags().BoolVar(&engine, "engine", true, "measure the engine as well")
	svgFlag(cmd, &svg)
	return cmd
}

// simulatedMatch is one result printed by the command "paper match". Times are in nanoseconds.
type simulatedMatch struct {
	Benchmark string            `json:"benchmark"`
	Depth     int               `json:"depth"`
	Designs   []simulatedDesign `json:"designs"`
	Engine    *float64          `json:"engine_ns"`
}

type simulatedDesign struct {
	Name   string    `json:"name"`
	Lists  int       `json:"lists"`
	MHz    float64   `json:"mhz"`
	Cycles sim.Cycle `json:"cycles"`
	Time   float64   `json:"ns"`
	Events uint64    `json:"events"`
}

func writeMatches(out io.Writer, results []simulatedMatch) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "DEPTH")
	for _, d := range twolevel.Designs() {
		fmt.Fprintf(w, "\t%s (ns)", strings.ToUpper(d.Name))
	}
	fmt.Fprintln(w, "\tENGINE (ns)")
	for _, r := range results {
		fmt.Fprint(w, r.Depth)
		for _, d := range r.Designs {
			fmt.Fprintf(w, "\t%.1f", d.Time)
		}
		if r.Engine == nil {
			fmt.Fprintln(w, "\t-")
			continue
		}
		fmt.Fprintf(w, "\t%.1f\n", *r.Engine)
	}
	return w.Flush()
}

// measureEngine returns how long a benchmark of the engine's matching takes, in nanoseconds.
func measureEngine(depth int, measure func(*match.Matcher[int, int], int) (time.Duration, error)) (float64, error) {
	m := match.New[int, int](match.Limits{})
	for i := range depth {
		if _, _, _, err := m.Post(0, int32(i), i); err != nil {
			return 0, err
		}
	}
	d, err := measure(m, depth)
	return float64(d.Nanoseconds()), err
}

// matchLast returns how long it takes to match the last receive and to post it again.
func matchLast(m *match.Matcher[int, int], depth int) (time.Duration, error) {
	const rounds = 20000
	last, began := int32(depth-1), time.Now()
	for range rounds {
		r, ok := m.Match(0, last)
		if !ok {
			return 0, fmt.Errorf("receive %d is not posted: an error of the engine", last)
		}
		if _, _, _, err := m.Post(0, last, r); err != nil {
			return 0, err
		}
	}
	return time.Since(began) / rounds, nil
}

// matchAll returns how long it takes to match all receives, from the last to the first.
func matchAll(m *match.Matcher[int, int], depth int) (time.Duration, error) {
	began := time.Now()
	for i := depth - 1; i >= 0; i-- {
		if _, ok := m.Match(0, int32(i)); !ok {
			return 0, fmt.Errorf("receive %d is not posted: an error of the engine", i)
		}
	}
	return time.Since(began), nil
}
