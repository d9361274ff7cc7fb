package main

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/lab/bench"
)

// benchOutput is where the results of a measurement go.
type benchOutput struct {
	markdown bool
	svg      string
	save     string
	into     string
}

func (o *benchOutput) flags(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.BoolVar(&o.markdown, "markdown", false, "print Markdown")
	fl.StringVar(&o.svg, "svg", "", "draw the plots into this folder, and show them in the Markdown")
}

func (a *app) benchCommand() *cobra.Command {
	var o bench.Options
	var out benchOutput
	cmd := &cobra.Command{
		Use: "bench [WORKLOAD…]", Short: "Measure zrlmpid beside what the machine allows and beside other MPI libraries",
		Long: `Measure zrlmpid on this machine, beside what it allows without any MPI and beside
the MPI libraries that are installed, in rounds of all sides in turn. Print medians,
ratios, what cost grows by, and how far the aims are. Without a workload, do all:
` + strings.Join(bench.Workloads(), ", ") + `.

The raw limits need a C compiler, the libraries their compilers (Open MPI: mpicc.openmpi,
MPICH: mpicc.mpich), and upstream's CPU library its program, which ` + bench.EnvUpstream + `
names. What is missing is left out, and the output says so.

Exit codes: 0 all was measured, 1 something failed, 2 the command line is wrong. An
aim that is missed is no failure.`,
		Example: `  zrlctl bench --quick
  zrlctl bench --save bench.json --svg plots
  zrlctl bench pingpong --only extended-udp,openmpi-tcp --steps 4:10000,1048576:100
  zrlctl bench show bench.json --markdown`,
		Args: cobra.ArbitraryArgs,
		RunE: operation(func(cmd *cobra.Command, args []string) error {
			o.Workloads = args
			if cmd.Flags().Changed("rounds") && o.Rounds < 1 {
				return usagef("--rounds %d: there is at least 1", o.Rounds)
			}
			return a.bench(cmd.Context(), o, &out, cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	out.flags(cmd)
	fl := cmd.Flags()
	fl.StringVar(&out.save, "save", "", "write all figures to this file, as JSON")
	fl.BoolVar(&o.Quick, "quick", false, "a few small steps, to see that everything works")
	fl.IntVar(&o.Rounds, "rounds", 0, "how often all sides are measured, in turn (default 3, or 1 if quick)")
	fl.StringSliceVar(&o.Only, "only", nil, "measure these sides only, as in extended-udp,mpich")
	fl.StringVar(&o.Steps, "steps", "", "measure these steps of the one workload instead of its own: N:ITERATIONS, with commas between")
	fl.DurationVar(&o.Timeout, "timeout", 0, "how long a side may take for a workload in a round (default 5m, or 30s if quick)")
	fl.StringVar(&o.CPUProfile, "cpuprofile", "", "write a CPU profile of each of zrlmpid's ranks, in the last round, to PREFIX.WORKLOAD.SIDE.RANK.pprof")
	cmd.AddCommand(a.benchShowCommand())
	return cmd
}

func (a *app) benchShowCommand() *cobra.Command {
	var out benchOutput
	cmd := &cobra.Command{
		Use: "show FILE", Short: "Print the tables of an earlier measurement, or put them into a document", Args: cobra.ExactArgs(1),
		Long: `Print the tables and verdicts of a measurement that bench --save has written.

With --into, put them into a document, in the place of what is there between the
comments <!-- bench: BLOCK --> and <!-- end of bench: BLOCK -->. A block has the figures of
one workload, and says which run they are of: WORKLOAD has plots, tables and the run, and
"aims of WORKLOAD" has verdicts, where there are any ("aims of pingpong and stream" compares
the two). Blocks of workloads that are not in FILE stay as they are; those that are, are
replaced as a whole. If the document has no place for a block, nothing is changed.`,
		Example: `  zrlctl bench show bench.json
  zrlctl bench show bench.json --into docs/performance.md --svg docs/img`,
		RunE: operation(func(cmd *cobra.Command, args []string) error {
			r, err := bench.Load(args[0])
			if err != nil {
				return err
			}
			return a.writeBench(r, &out, cmd.OutOrStdout())
		}),
	}
	out.flags(cmd)
	cmd.Flags().StringVar(&out.into, "into", "", "put the tables into this Markdown document instead of printing them")
	return cmd
}

func (a *app) bench(ctx context.Context, o bench.Options, out *benchOutput, stdout, stderr io.Writer) error {
	r, err := bench.Run(ctx, o, stderr)
	if err != nil {
		if _, ok := errors.AsType[*bench.UsageError](err); ok {
			return &usageError{err}
		}
		return err
	}
	if out.save != "" {
		err = r.Save(out.save)
	}
	// What was measured is printed even if it cannot be saved.
	return errors.Join(err, a.writeBench(r, out, stdout), r.Err())
}

// writeBench prints a measurement, or puts it into a document, and draws it if it is to.
func (a *app) writeBench(r *bench.Report, out *benchOutput, stdout io.Writer) error {
	if out.into != "" { // before the plots, which stay if the document has no place
		images := ""
		if out.svg != "" {
			rel, err := filepath.Rel(filepath.Dir(out.into), out.svg)
			if err != nil {
				return err
			}
			images = filepath.ToSlash(rel)
		}
		if err := r.Update(out.into, images); err != nil {
			return err
		}
	}
	if out.svg != "" {
		if err := r.Draw(out.svg); err != nil {
			return err
		}
	}
	switch {
	case out.into != "":
		return nil
	case a.json:
		return r.WriteJSON(stdout)
	}
	return r.Print(stdout, bench.Format{Markdown: out.markdown, Images: out.svg})
}

// benchRankCommand is what bench starts for each rank. Its arguments are bench's
// own, so no flag of zrlctl is looked for.
func (a *app) benchRankCommand() *cobra.Command {
	return &cobra.Command{
		Use: bench.RankCommand, Hidden: true, DisableFlagParsing: true,
		RunE: operation(func(cmd *cobra.Command, args []string) error {
			return bench.RunRank(cmd.Context(), args, cmd.InOrStdin(), cmd.OutOrStdout())
		}),
	}
}
