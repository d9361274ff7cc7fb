package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
	"github.com/zrlmpi/zrlmpid/lab/tune"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

func (a *app) tuneCommand() *cobra.Command {
	var o tune.Options
	var output, maxBytes string
	cmd := &cobra.Command{
		Use: "tune", Short: "Measure the algorithms of collectives, and make the table by which they are chosen",
		Long: `Measure which algorithm is the fastest for each collective on this machine: every one,
by length, segment and number of ranks, between processes that share memory, and between
processes that use the network, which is the loopback device. All is measured in rounds;
the first call of each measurement is verified. Print the medians, and what comes of them.

With --output, write the table. It takes effect where it is configured, as
collectives.table or by ZRLMPI_COLLECTIVES_TABLE, which has to be on all ranks. What a
table does not have is carried out by the first algorithm that can, so a table for use
should have all collectives.

Exit codes: 0 all was measured, 1 something failed, 2 the command line is wrong.`,
		Example: `  zrlctl tune --quick
  zrlctl tune --output table.yaml
  zrlctl tune --collectives bcast,allreduce --ranks 4 --transports tcp --max-bytes 16MiB
  zrlctl tune show table.yaml`,
		Args: cobra.NoArgs,
		RunE: operation(func(cmd *cobra.Command, _ []string) error {
			for _, flag := range []string{"rounds", "limit"} {
				if f := cmd.Flags().Lookup(flag); f.Changed && (f.Value.String() == "0" || f.Value.String() == "0s") {
					return usagef("--%s %s: give more than that", flag, f.Value)
				}
			}
			if maxBytes != "" {
				var size strictyaml.Size
				if err := size.UnmarshalText([]byte(maxBytes)); err != nil || size < 1 {
					return usagef("--max-bytes %q: give a size, as in 64KiB or 16MiB", maxBytes)
				}
				o.MaxBytes = int(size)
			}
			return a.tune(cmd.Context(), o, output, cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	fl := cmd.Flags()
	fl.StringVar(&output, "output", "", "write the table to this file")
	fl.BoolVar(&o.Quick, "quick", false, "measure little, to see that everything works")
	fl.StringSliceVar(&o.Transports, "transports", nil, "what ranks talk over: shm for ranks that share memory, udp or tcp for others (default shm,udp)")
	fl.IntSliceVar(&o.Ranks, "ranks", nil, "numbers of ranks (default 2,4,8, or 2,4 if quick)")
	fl.StringSliceVar(&o.Collectives, "collectives", nil, "measure these only, of "+strings.Join(choice.Names(), ", "))
	fl.StringVar(&maxBytes, "max-bytes", "", "the longest vector, or all blocks of one (default 2MiB, or 32KiB if quick)")
	fl.IntVar(&o.Rounds, "rounds", 0, "how often all is measured, in turn (default 5, or 1 if quick)")
	fl.DurationVar(&o.Limit, "limit", 0, "measure no longer than this; the rounds that are complete then count (default 30m)")
	cmd.AddCommand(a.tuneShowCommand())
	return cmd
}

func (a *app) tuneShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show [FILE]", Short: "Print a table that tune has written, or the one that is built in", Args: cobra.MaximumNArgs(1),
		Long: `Print a table that tune --output has written, or somebody by hand: the medians, and which
algorithm is taken. Without a file, it is the table that is built in.`,
		RunE: operation(func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.writeTable(choice.Shipped(), cmd.OutOrStdout())
			}
			f, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			table, err := choice.Load(f, args[0])
			if err != nil {
				return err
			}
			return a.writeTable(table, cmd.OutOrStdout())
		}),
	}
}

func (a *app) tune(ctx context.Context, o tune.Options, output string, stdout, stderr io.Writer) (err error) {
	var file *os.File
	if output != "" { // now, as it would be a pity later
		if file, err = os.CreateTemp(filepath.Dir(output), ".zrlctl-tune-"); err != nil {
			return err
		}
		defer func() {
			file.Close()
			_ = os.Remove(file.Name()) // unless it has another name now
		}()
	}
	r, err := tune.Run(ctx, o, stderr)
	if err != nil {
		if _, ok := errors.AsType[*tune.UsageError](err); ok {
			return &usageError{err}
		}
		return err
	}
	if file != nil {
		err = save(r.Table, file, output)
	}
	// What was measured is printed even if it cannot be saved.
	return errors.Join(err, a.writeTable(r.Table, stdout), r.Err())
}

func (a *app) writeTable(t *choice.Table, stdout io.Writer) error {
	if a.json {
		return writeJSON(stdout, t.Document())
	}
	return tune.Print(stdout, t)
}

// save writes a table, which takes the place of an older one when it is complete.
func save(t *choice.Table, file *os.File, path string) error {
	const readable = 0o644 // as for files that others make
	if err := errors.Join(t.Write(file), file.Chmod(readable), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// tuneRankCommand is what tune starts for each rank. Its arguments are tune's own, so
// no flag of zrlctl is looked for.
func (a *app) tuneRankCommand() *cobra.Command {
	return &cobra.Command{
		Use: tune.RankCommand, Hidden: true, DisableFlagParsing: true,
		RunE: operation(func(cmd *cobra.Command, args []string) error {
			return tune.RunRank(cmd.Context(), args, cmd.InOrStdin(), cmd.OutOrStdout())
		}),
	}
}
