// Command zrlbench measures zrlmpid on this machine, and compares it with the limits of the machine and with other MPI
// libraries. It also measures the algorithms of collectives.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/internal/version"
	"github.com/zrlmpi/zrlmpid/lab/bench"
	"github.com/zrlmpi/zrlmpid/lab/goodput"
	"github.com/zrlmpi/zrlmpid/lab/path"
	"github.com/zrlmpi/zrlmpid/lab/results"
	"github.com/zrlmpi/zrlmpid/lab/tune"
)

// Exit codes of zrlbench.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the body of main, with all dependencies as arguments.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{rankOut: stdout, commandLine: strings.Join(append([]string{"zrlbench"}, args...), " ")}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	out := bufio.NewWriter(stdout)
	root.SetOut(out)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	// After a write error, Flush returns the error again. A command whose output is incomplete therefore fails even if
	// it ignored the error.
	if failed := out.Flush(); failed != nil && !errors.Is(err, failed) {
		err = errors.Join(err, failed)
	}
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "zrlbench: %v\n", err)
	if !a.started || isUsage(err) {
		return exitUsage
	}
	return exitFailure
}

// app holds the state that all commands share.
type app struct {
	json bool
	// commandLine is the command line that is recorded in measurements.
	commandLine string
	// started means that the command's flags and arguments were accepted, so that it runs. Errors before that point are
	// usage errors.
	started bool
	// rankOut is standard output for rank processes. It is unbuffered because the parent process waits for each line.
	rankOut io.Writer
}

// root returns the program's commands.
func (a *app) root() *cobra.Command {
	root := a.benchCommand()
	root.SilenceUsage, root.SilenceErrors = true, true
	root.PersistentPreRun = func(*cobra.Command, []string) { a.started = true }
	root.PersistentFlags().BoolVar(&a.json, "json", false, "output JSON")
	root.AddCommand(a.showCommand(), a.archiveCommand(), a.tuneCommand(), a.goodputCommand(), a.paperCommand(),
		a.versionCommand(),
		a.rankCommand(bench.RankCommand, bench.RunRank), a.rankCommand(tune.RankCommand, tune.RunRank),
		a.rankCommand(goodput.FlowCommand, goodput.RunFlow), a.rankCommand(path.EmulatorCommand, path.RunEmulator))
	return root
}

// rankCommand returns the hidden command with which the program starts itself for each rank. Its arguments are not
// parsed as flags of zrlbench.
func (a *app) rankCommand(name string, run func(context.Context, []string, io.Reader, io.Writer) error) *cobra.Command {
	return &cobra.Command{
		Use: name, Hidden: true, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), args, cmd.InOrStdin(), a.rankOut)
		},
	}
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of zrlbench", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.json {
				return writeJSON(cmd.OutOrStdout(), map[string]string{"version": version.String()})
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "zrlbench %s\n", version.String())
			return err
		},
	}
}

// usageError reports a mistake on the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// isUsage reports whether err was caused by a mistake on the command line.
func isUsage(err error) bool {
	if _, ok := errors.AsType[*usageError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*bench.UsageError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*results.NotFoundError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*goodput.UsageError](err); ok {
		return true
	}
	_, ok := errors.AsType[*tune.UsageError](err)
	return ok
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
