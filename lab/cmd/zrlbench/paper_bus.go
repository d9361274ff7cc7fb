package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/lab/sim"
	"github.com/zrlmpi/zrlmpid/lab/sim/sharedbus"
)

// simulatedProgram is one result printed by the commands "paper matvec" and "paper backsub".
type simulatedProgram struct {
	Program    string    `json:"program"`
	Size       int       `json:"size"`
	Processors int       `json:"processors"`
	Cycles     sim.Cycle `json:"cycles"`
	Time       float64   `json:"ms"`
	SpeedUp    float64   `json:"speed_up"`
	Events     uint64    `json:"events"`
}

// paperProgramCommand returns the command that simulates a program on soft processors.
func (a *app) paperProgramCommand(program sharedbus.Program, does string, sizes []int) *cobra.Command {
	var processors []int
	var svg string
	cmd := &cobra.Command{
		Use: program.Name, Short: "Simulate " + does + " on soft processors with a shared memory", Args: cobra.NoArgs,
		Long: "Simulate " + does + ` on soft processors of an FPGA, with an MPI
library whose messages pass through a shared memory on a bus that serves processors in turn. The
speed-up is relative to one processor.`,
		Example: "  zrlbench paper " + program.Name + " --sizes 100,300 --processors 1,2,4,8",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var results []simulatedProgram
			for _, n := range sizes {
				one, err := program.Run(n, 1)
				if err != nil {
					return usagef("--sizes: %w", err)
				}
				for _, count := range processors {
					if err := cmd.Context().Err(); err != nil {
						return err
					}
					result, err := program.Run(n, count)
					if err != nil {
						return usagef("--processors: %w", err)
					}
					results = append(results,
						simulatedProgram{program.Name, n, count, result.Cycles, result.Milliseconds(),
							float64(one.Cycles) / float64(result.Cycles), result.Events})
				}
			}
			if err := drawAll(svg, programChart(program.Name, results)); err != nil {
				return err
			}
			if a.json {
				return writeJSON(cmd.OutOrStdout(), results)
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "SIZE\tPROCESSORS\tTIME (ms)\tSPEED-UP\tEFFICIENCY")
			for _, r := range results {
				fmt.Fprintf(w, "%d\t%d\t%.1f\t%.2f\t%.2f\n", r.Size, r.Processors, r.Time, r.SpeedUp,
					r.SpeedUp/float64(r.Processors))
			}
			return w.Flush()
		},
	}
	cmd.Flags().IntSliceVar(&sizes, "sizes", sizes, fmt.Sprintf("rows and columns, 1 to %d", sharedbus.MaxSize))
	cmd.Flags().IntSliceVar(&processors, "processors", []int{1, 2, 4, 6, 8},
		fmt.Sprintf("processors, 1 to %d", sharedbus.MaxProcessors))
	svgFlag(cmd, &svg)
	return cmd
}
