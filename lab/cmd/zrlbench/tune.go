package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/config/collectives"
	"github.com/zrlmpi/zrlmpid/internal/bytesize"
	"github.com/zrlmpi/zrlmpid/lab/tune"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

func (a *app) tuneCommand() *cobra.Command {
	var options tune.Options
	var output, maxBytes string
	cmd := &cobra.Command{
		Use: "tune", Short: "Measure the algorithms of collectives, and make the table that chooses between them",
		Long: `Measure which algorithm is the fastest for each collective on this machine: all
algorithms, by length, segment and number of ranks, between processes that share memory,
and between processes that use the loopback network. Measurements are repeated in rounds;
the first call of each is verified. Print the medians and the algorithms chosen.

With --output, write the table. To use it, configure it on all ranks, as
collectives.table or by ZRLMPI_COLLECTIVES_TABLE. For a collective that the table
lacks, ranks use the first algorithm that supports the call, so a table should have all
collectives.

Exit codes: 0 everything was measured, 1 a measurement failed, 2 the command line is wrong.`,
		Example: `  zrlbench tune --quick
  zrlbench tune --output table.yaml
  zrlbench tune --collectives bcast,allreduce --ranks 4 --transports tcp --max-bytes 16MiB
  zrlbench tune show table.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, flag := range []string{"rounds", "limit"} {
				if f := cmd.Flags().Lookup(flag); f.Changed && (f.Value.String() == "0" || f.Value.String() == "0s") {
					return usagef("--%s %s: give more than 0", flag, f.Value)
				}
			}
			if maxBytes != "" {
				var size bytesize.Size
				if err := size.UnmarshalText([]byte(maxBytes)); err != nil || size < 1 {
					return usagef("--max-bytes %q: give a size, as in 64KiB or 16MiB", maxBytes)
				}
				options.MaxBytes = int(size)
			}
			return a.runTune(cmd.Context(), options, output, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&output, "output", "", "write the table to this file")
	fl.BoolVar(&options.Quick, "quick", false, "measure a few small steps, to check that everything works")
	fl.StringSliceVar(&options.Transports, "transports", nil,
		"transports: shm for ranks that share memory, udp or tcp for others (default shm,udp)")
	fl.IntSliceVar(&options.Ranks, "ranks", nil, "numbers of ranks (default 2,4,8, or 2,4 with --quick)")
	fl.StringSliceVar(&options.Collectives, "collectives", nil,
		"measure these collectives only, of "+strings.Join(choice.CollectiveNames(), ", "))
	fl.StringVar(&maxBytes, "max-bytes", "",
		"length of the longest vector, or of all its blocks (default 2MiB, or 32KiB with --quick)")
	fl.IntVar(&options.Rounds, "rounds", 0, "number of rounds (default 5, or 1 with --quick)")
	fl.DurationVar(&options.Limit, "limit", 0, "time limit; the rounds that are complete by then count (default 30m)")
	cmd.AddCommand(a.tuneShowCommand())
	return cmd
}

func (a *app) tuneShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show [FILE]", Short: "Print a table that tune has written, or the built-in one",
		Args: cobra.MaximumNArgs(1),
		Long: `Print a table that tune --output or a user has written: the medians, and the algorithms chosen.
By default, print the built-in table.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.writeTable(tune.Shipped(), cmd.OutOrStdout())
			}
			f, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			table, err := collectives.Load(f, args[0])
			if err != nil {
				return err
			}
			return a.writeTable(table, cmd.OutOrStdout())
		},
	}
}

func (a *app) runTune(ctx context.Context, options tune.Options, output string, stdout, stderr io.Writer) (err error) {
	var file *os.File
	if output != "" { // first, so that an unwritable file fails before minutes of measurements
		if file, err = os.CreateTemp(filepath.Dir(output), ".zrlbench-tune-"); err != nil {
			return err
		}
		defer func() {
			file.Close()
			_ = os.Remove(file.Name()) // the file still exists only if the table was not written
		}()
	}
	report, err := tune.Run(ctx, options, stderr)
	if err != nil {
		return err
	}
	if file != nil {
		err = save(report.Table, file, output)
	}
	// The results are printed even if they cannot be saved.
	return errors.Join(err, a.writeTable(report.Table, stdout), report.Err())
}

func (a *app) writeTable(t *collectives.Table, stdout io.Writer) error {
	if a.json {
		return writeJSON(stdout, t.Document())
	}
	return tune.Print(stdout, t)
}

// saveTable writes a table to the file at path. It replaces an existing file only when the table is complete.
func saveTable(t *collectives.Table, path string) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".zrlbench-")
	if err != nil {
		return err
	}
	if err := save(t, file, path); err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// save writes a table to file, and then renames file to path.
func save(t *collectives.Table, file *os.File, path string) error {
	const readable = 0o644 // CreateTemp uses 0600
	if err := errors.Join(t.Write(file), file.Chmod(readable), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
