package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/lab/sim"
	"github.com/zrlmpi/zrlmpid/lab/sim/bcast"
	"github.com/zrlmpi/zrlmpid/lab/sim/sharedbus"
)

func (a *app) paperCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "paper", Short: "Simulate hardware for message passing, and collective calls on clusters",
		Long: `Simulate machines that publications on message passing in hardware describe, cycle by cycle, and
predict collective calls on clusters. Nothing is sent, and no daemon is needed. Equal
parameters give equal results.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.paperBcastCommand(), a.paperMatchCommand(),
		a.paperProgramCommand(sharedbus.MatVec(), "a matrix by a vector", []int{50, 100, 150, 200, 250, 300}),
		a.paperProgramCommand(sharedbus.BackSub(), "back substitution", []int{100, 200, 300, 400, 500, 600}),
		a.paperScaleCommand(), a.paperChooseCommand())
	return cmd
}

func (a *app) paperBcastCommand() *cobra.Command {
	var table2, figures bool
	var svg string
	var clock float64
	var busy []string
	setup := bcast.Setup{}
	cmd := &cobra.Command{
		Use: "bcast", Short: "Simulate broadcasts of message passing engines on a crossbar", Args: cobra.NoArgs,
		Long: `Simulate a broadcast of nodes with message passing engines on a crossbar, by four algorithms:
pipelined (a synchronisation for each segment), atomic (one for all), and atomic with the
initial-order and the full-order change: free nodes come first in the chain, and busy ones
behind them, with full-order by what they have still to send. The algorithms are from Park,
Efficient Pipelined Broadcast with Monitoring Processing Node Status (2019). A hop carries a
control message or a word in a cycle.`,
		Example: `  zrlbench paper bcast --nodes 32 --bytes 64
  zrlbench paper bcast --nodes 8 --bytes 4 --busy 1=1100,2=600,3=40
  zrlbench paper bcast --table2 --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case svg != "" && !figures:
				return usagef("--svg: only --figures has plots; give both")
			case table2 || figures:
				for _, name := range []string{"nodes", "bytes", "busy", "root", "word", "clock"} {
					if cmd.Flags().Changed(name) {
						return usagef("--%s: --table2 and --figures have parameters of their own; leave it out", name)
					}
				}
				if table2 && figures {
					return usagef("--figures: give only one of --table2, --figures")
				}
				if figures {
					return a.paperCells(cmd.OutOrStdout(), bcast.Figures, svg)
				}
				return a.paperCells(cmd.OutOrStdout(), bcast.Table2, "")
			case !(clock >= 0.001 && clock <= 1e6):
				return usagef("--clock %v: must be 0.001 to 1000000 MHz", clock)
			}
			var err error
			if setup.BusyBytes, err = busyNodes(busy); err != nil {
				return err
			}
			return a.paperBcast(cmd.OutOrStdout(), setup, clock)
		},
	}
	f := cmd.Flags()
	f.IntVar(&setup.Nodes, "nodes", 8, fmt.Sprintf("number of nodes, 2 to %d", bcast.MaxNodes))
	f.IntVar(&setup.Root, "root", 0, "node that has the data")
	f.IntVar(&setup.Bytes, "bytes", 64, fmt.Sprintf("length of the data, 1 to %d", bcast.MaxBytes))
	f.StringSliceVar(&busy, "busy", nil, "nodes that have still to send, and how many bytes, as in 1=128,2=32")
	f.IntVar(&setup.Word, "word", bcast.SourceWord, "bytes that a hop carries in a cycle")
	f.Float64Var(&clock, "clock", 1000/bcast.SourceNanoseconds, "clock in MHz")
	f.BoolVar(&table2, "table2", false, "print table 2 of the source")
	svgFlag(cmd, &svg)
	f.BoolVar(&figures, "figures", false, "print the points of figures 18 to 21 of the source")
	return cmd
}

// busyNodes parses the values of the flag --busy.
func busyNodes(list []string) (map[int]int, error) {
	left := map[int]int{}
	for _, item := range list {
		node, bytes, ok := strings.Cut(item, "=")
		r, err1 := strconv.Atoi(node)
		n, err2 := strconv.Atoi(bytes)
		if !ok || err1 != nil || err2 != nil {
			return nil, usagef("--busy %q: must be a node and its bytes, as in 1=128", item)
		}
		if _, twice := left[r]; twice {
			return nil, usagef("--busy %q: node %d is listed twice", item, r)
		}
		left[r] = n
	}
	return left, nil
}

// simulatedBcast is one result printed by the command "paper bcast". Times are in nanoseconds.
type simulatedBcast struct {
	Algorithm  bcast.Variant `json:"algorithm"`
	Cycles     sim.Cycle     `json:"cycles"`
	Time       float64       `json:"ns"`
	Segments   int           `json:"segments"`
	SyncCycles sim.Cycle     `json:"sync_cycles"`
	Order      []int         `json:"order"`
	Events     uint64        `json:"events"`
}

func (a *app) paperBcast(out io.Writer, setup bcast.Setup, clock float64) error {
	var results []simulatedBcast
	for _, variant := range bcast.Variants() {
		result, err := bcast.Run(setup, variant)
		if errors.Is(err, bcast.ErrSetup) {
			return usagef("paper bcast: %w", err)
		}
		if err != nil {
			return err
		}
		results = append(results,
			simulatedBcast{variant, result.Cycles, float64(result.Cycles) * 1000 / clock, result.Segments, result.SyncCycles,
				result.Order, result.Events})
	}
	if a.json {
		return writeJSON(out, results)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ALGORITHM\tCYCLES\tTIME (ns)\tSPEED-UP\tSEGMENTS\tSYNC CYCLES\tORDER")
	for _, r := range results {
		fmt.Fprintf(w, "%v\t%d\t%.1f\t%.3f\t%d\t%d\t%s\n", r.Algorithm, r.Cycles, r.Time,
			float64(results[0].Cycles)/float64(r.Cycles), r.Segments, r.SyncCycles, chainText(r.Order))
	}
	return w.Flush()
}

// chainNodes is the maximum number of nodes for which an order is printed.
const chainNodes = 16

func chainText(order []int) string {
	var b strings.Builder
	for i, r := range order[:min(len(order), chainNodes)] {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strconv.Itoa(r))
	}
	if len(order) > chainNodes {
		b.WriteString(" …")
	}
	return b.String()
}

func (a *app) paperCells(out io.Writer, cells func() ([]bcast.Cell, error), svg string) error {
	list, err := cells()
	if err == nil {
		err = drawAll(svg, figureCharts(list))
	}
	if err != nil {
		return err
	}
	if a.json {
		return writeJSON(out, list)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NODES\tBYTES\tUNDER WAY AT P1\tATOMIC (ns)\tORDER CHANGED (ns)\tSPEED-UP")
	for _, c := range list {
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%.3f\n", c.Nodes, c.Bytes, c.BusyBytes, c.Atomic, c.Changed, c.Ratio)
	}
	return w.Flush()
}
