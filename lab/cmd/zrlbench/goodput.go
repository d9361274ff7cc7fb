package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/lab/goodput"
)

func (a *app) goodputCommand() *cobra.Command {
	var options goodput.Options
	var save string
	var markdown bool
	cmd := &cobra.Command{
		Use: "goodput [PART…]", Short: "Measure throughput over long and lossy paths, compared with TCP CUBIC",
		Long: `Measure how many bytes a second the profile extended moves over emulated paths, over UDP
and TCP, and a connection of TCP CUBIC through the same path: 100 Mbit/s, a queue of
one bandwidth-delay product, and in turn

  loss     round trips of 2, 20 and 100 ms, with a loss of 0, 0.1, 1 and 5 %
  mtu      MTUs of 1280 and 9000 bytes
  reorder  5 % of the packets reordered by 2 ms, or duplicated
  shares   two flows at once
  intact   100 MB with loss, reordering and duplicates

Each measurement runs in two new network namespaces, which end with the program, and
every byte is verified. By default all parts are measured. It needs Linux, root, and the
program ip of iproute2.

Exit codes: 0 everything was measured, 1 a measurement failed, 2 the command line is wrong.`,
		Example: `  zrlbench goodput --quick
  zrlbench goodput loss --rtt 20,100 --loss 1 --only extended-udp,tcp-cubic
  zrlbench goodput --save goodput.json
  zrlbench goodput show goodput.json --markdown`,
		Args: cobra.ArbitraryArgs, ValidArgs: goodput.Parts(),
		RunE: func(cmd *cobra.Command, args []string) error {
			options.Parts = args
			if cmd.Flags().Changed("rounds") && options.Rounds < 1 {
				return usagef("--rounds %d: give at least 1", options.Rounds)
			}
			return a.runGoodput(cmd.Context(), options, save, markdown, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&save, "save", "", "write all figures to this file, as JSON")
	fl.BoolVar(&markdown, "markdown", false, "output Markdown")
	fl.BoolVar(&options.Quick, "quick", false, "measure a few cells for a second, to check that everything works")
	fl.IntVar(&options.Rounds, "rounds", 0, "number of rounds (default 3, or 1 with --quick)")
	fl.IntVar(&options.Seed, "seed", 0, "seed of the losses of the first round; each further round uses the next number")
	fl.Float64SliceVar(&options.RTTs, "rtt", nil, "round trips of the part loss, in milliseconds (default 2,20,100)")
	fl.Float64SliceVar(&options.Losses, "loss", nil, "losses of the part loss, in percent (default 0,0.1,1,5)")
	fl.Lookup("rtt").DefValue, fl.Lookup("loss").DefValue = "", "" // pflag would print []
	fl.IntSliceVar(&options.MTUs, "mtu", nil, "MTUs of the part mtu (default 1280,9000)")
	fl.StringSliceVar(&options.Only, "only", nil, "measure these sides only, of tcp-cubic,extended-udp,extended-tcp")
	cmd.AddCommand(a.goodputShowCommand())
	return cmd
}

func (a *app) goodputShowCommand() *cobra.Command {
	var markdown bool
	cmd := &cobra.Command{
		Use: "show FILE…", Short: "Print the tables of earlier measurements", Args: cobra.MinimumNArgs(1),
		Long: `Print the tables of measurements that zrlbench goodput --save has written. The rounds of
several files are put together.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := goodput.Load(args...)
			if err != nil {
				return err
			}
			return a.writeGoodput(r, markdown, cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&markdown, "markdown", false, "output Markdown")
	return cmd
}

func (a *app) runGoodput(ctx context.Context, o goodput.Options, save string, markdown bool, stdout,
	stderr io.Writer) error {
	report, err := goodput.Run(ctx, o, stderr)
	if err != nil {
		return err
	}
	if save != "" {
		err = report.Save(save)
	}
	// The results are printed even if they cannot be saved.
	return errors.Join(err, a.writeGoodput(report, markdown, stdout), report.Err())
}

func (a *app) writeGoodput(r *goodput.Report, markdown bool, stdout io.Writer) error {
	if a.json {
		return r.WriteJSON(stdout)
	}
	return r.Print(stdout, markdown)
}
