// Command zrlctl shows the state of a zrlmpid, sends and receives messages through it, and
// analyzes recordings of packets.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/internal/launch"
)

// The exit codes.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitUnreachable = 3
	exitTimeout     = 4
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is main with its environment as arguments.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root, a := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	out := &output{Writer: stdout}
	root.SetOut(out)
	root.SetErr(stderr)
	err := out.failed(root.ExecuteContext(ctx))
	code := exitCode(err)
	if err == nil || printed(err) {
		return code
	}
	fmt.Fprintf(stderr, "zrlctl: %v\n", err)
	if a.json {
		failure := struct {
			*control.Error
			Exit int `json:"exit"`
		}{control.AsError(err), code}
		if err := json.NewEncoder(stdout).Encode(failure); err != nil {
			return exitFailure
		}
	}
	return code
}

// printed reports whether an error was printed as the result of the command.
func printed(err error) bool {
	return errors.Is(err, errFindings) || errors.Is(err, errDiffers)
}

// app is the state that the commands share.
type app struct {
	socket string
	json   bool
}

const longHelp = `Show the state of a zrlmpid, send and receive messages through it, and analyze
recordings of packets.

Exit codes:
  0  success
  1  failure: an echo differs, a rank refused, the daemon reported an error,
     or the output could not be written; analyze: problems found; reload:
     configuration refused; replay: the peer deviated from the recording
  2  invalid command line; decode, analyze, replay: unreadable recording
  3  no daemon answers on the control socket
  4  timed out

run has that of the rank that has failed.`

func newRoot() (*cobra.Command, *app) {
	a := new(app)
	socket := config.FindSocket()
	if s := os.Getenv(config.EnvControlSocket); s != "" {
		socket = s
	}
	root := &cobra.Command{
		Use: "zrlctl", Short: "Control a zrlmpid", Long: longHelp,
		SilenceUsage: true, SilenceErrors: true,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.PersistentFlags().StringVar(&a.socket, "socket", socket, "control socket of the daemon (or set "+config.EnvControlSocket+")")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "output JSON, including errors; ping outputs an object a line")
	root.AddCommand(a.statusCommand(), a.topCommand(), a.ranksCommand(), a.pingCommand(), a.sendCommand(), a.recvCommand(), a.resetCommand(), a.reloadCommand(),
		a.decodeCommand(), a.analyzeCommand(), a.replayCommand(), a.impairCommand(), a.runCommand(), a.metricsCommand(), a.versionCommand())
	return root, a
}

func (a *app) client() *control.Client { return control.NewClient(a.socket) }

// operation marks the errors of a command's function as failures of the operation. All
// others are cobra's, and mistakes on the command line.
func operation(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := f(cmd, args); err != nil {
			return &operationError{err}
		}
		return nil
	}
}

// operationError is the error of an operation.
type operationError struct{ error }

func (e *operationError) Unwrap() error { return e.error }

// usageError is a mistake on the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// exitCode returns the exit code of a command's error.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if job, ok := errors.AsType[*jobError](err); ok {
		return launch.ExitCode(job.error)
	}
	if _, ok := errors.AsType[*operationError](err); !ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*unreadableError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*control.UnreachableError](err); ok {
		return exitUnreachable
	}
	switch control.KindOf(err) {
	case control.Timeout:
		return exitTimeout
	case control.Usage:
		return exitUsage
	}
	return exitFailure
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of zrlctl", Args: cobra.NoArgs,
		RunE: operation(func(cmd *cobra.Command, _ []string) error {
			if a.json {
				return writeJSON(cmd.OutOrStdout(), map[string]string{"version": control.Version()})
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "zrlctl %s\n", control.Version())
			return err
		}),
	}
}
