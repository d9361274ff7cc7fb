package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/lab/bench"
)

// benchOutput selects how a measurement is printed.
type benchOutput struct {
	markdown bool
	svg      string
	save     string
}

func (o *benchOutput) addFlags(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.BoolVar(&o.markdown, "markdown", false, "output Markdown")
	fl.StringVar(&o.svg, "svg", "", "draw the plots into this `folder`, and show them in the Markdown")
}

// benchCommand returns the root command: zrlbench [WORKLOAD…].
func (a *app) benchCommand() *cobra.Command {
	var options bench.Options
	var out benchOutput
	cmd := &cobra.Command{
		Use: "zrlbench [WORKLOAD…]", Short: "Compare zrlmpid with the limits of the machine and other MPI libraries",
		Long: `Measure zrlmpid on this machine, and compare it with the limits of the machine without MPI
and with the MPI libraries that are installed. Each round measures all of them in turn.
A measurement is repeated, at most three times, if the transfer of a cache line between
two processors took over 1.5 times its minimum meanwhile, as happens in virtual machines.
Print medians, ratios and growth. By default all workloads are measured:
` + strings.Join(bench.Workloads(), ", ") + `.

The raw limits need a C compiler, the libraries their compilers (Open MPI: mpicc.openmpi,
MPICH: mpicc.mpich), and upstream's CPU library its program, which ` + bench.EnvUpstream + `
names. Messages between two hosts (-veth, -xdp) need Linux, root and ip of iproute2.
Implementations that are missing are skipped, and listed in the output.

Exit codes: 0 everything was measured, 1 a measurement failed, 2 the command line is wrong.`,
		Example: `  zrlbench --quick
  zrlbench --save bench.json --svg plots
  zrlbench pingpong --only extended-udp,openmpi-tcp --steps 4:10000,1048576:100
  zrlbench pingpong rate --disturb
  zrlbench show bench.json --markdown
  zrlbench archive bench.json
  zrlbench tune --output table.yaml`,
		Args: cobra.ArbitraryArgs, ValidArgs: bench.Workloads(),
		RunE: func(cmd *cobra.Command, args []string) error {
			options.Workloads = args
			if cmd.Flags().Changed("rounds") && options.Rounds < 1 {
				return usagef("--rounds %d: give at least 1", options.Rounds)
			}
			return a.runBench(cmd.Context(), options, &out, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	out.addFlags(cmd)
	fl := cmd.Flags()
	fl.StringVar(&out.save, "save", "", "write all figures to this file, as JSON")
	fl.BoolVar(&options.Quick, "quick", false, "measure a few small steps, to check that everything works")
	fl.BoolVar(&options.Disturb, "disturb", false, "measure everything twice in each round, the second time with a "+
		"neighbour that takes a fifth of each processor in bursts of 1-20 ms")
	fl.IntVar(&options.Rounds, "rounds", 0, "number of rounds (default 3, or 1 with --quick)")
	fl.StringSliceVar(&options.Only, "only", nil, "measure these implementations only, as in extended-udp,mpich")
	fl.StringVar(&options.Steps, "steps", "",
		"steps of the workload, instead of its default steps: N:ITERATIONS, separated by commas")
	fl.DurationVar(&options.Timeout, "timeout", 0,
		"time limit of an implementation for a workload in a round (default 5m, or 30s with --quick)")
	fl.StringVar(&options.CPUProfile, "cpuprofile", "", "write a CPU profile of each of zrlmpid's ranks, in the last "+
		"round, to PREFIX.WORKLOAD.IMPLEMENTATION.RANK.pprof")
	return cmd
}

func (a *app) runBench(ctx context.Context, o bench.Options, out *benchOutput, stdout, stderr io.Writer) error {
	report, err := bench.Run(ctx, o, stderr)
	if err != nil {
		return err
	}
	report.Command = a.commandLine
	if out.save != "" {
		err = report.Save(out.save)
	}
	// The results are printed even if they cannot be saved.
	return errors.Join(err, a.writeBench(report, out, stdout), report.Err())
}

// writeBench prints a measurement, and draws its plots if the user asked for them.
func (a *app) writeBench(report *bench.Report, out *benchOutput, stdout io.Writer) error {
	if out.svg != "" {
		if err := report.Draw(out.svg, func(string) bool { return true }); err != nil {
			return err
		}
	}
	if a.json {
		return report.WriteJSON(stdout)
	}
	return report.Print(stdout, bench.Format{Markdown: out.markdown, Images: out.svg})
}
