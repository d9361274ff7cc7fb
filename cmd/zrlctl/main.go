// Command zrlctl shows the state of a zrlmpid daemon, sends and receives messages through it, and analyzes recordings
// of packets.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/internal/launch"
	"github.com/zrlmpi/zrlmpid/internal/rlimit"
	"github.com/zrlmpi/zrlmpid/internal/version"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitUnreachable = 3
	exitTimeout     = 4
	exitWaits       = 5
)

func main() {
	os.Exit(run(withSignals(context.Background()), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run implements main. It receives the command line and the standard streams as parameters, so that tests can replace
// them.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root, a := newRoot()
	if cmd, _, err := root.Find(args); err == nil && cmd.Name() == "run" {
		at := slices.Index(args, "run") + 1
		args = append(args[:at:at], expandFlags(cmd.Flags(), args[at:])...)
	}
	root.SetArgs(args)
	root.SetIn(stdin)
	out := &output{Writer: stdout}
	root.SetOut(out)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	err = rlimit.Descriptor(out.joinError(err))
	code := exitCode(err)
	if err == nil || isPrinted(err) {
		return code
	}
	if end := signalExitCode(ctx); end != 0 && !isJob(err) {
		code = end
	}
	fmt.Fprintf(stderr, "zrlctl: %v\n", err)
	if _, ok := errors.AsType[*syntaxError](err); ok {
		fmt.Fprintln(stderr, usageLine(cmd))
	}
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

// isPrinted reports whether err needs no further message, because the command has already printed it as part of its
// result.
func isPrinted(err error) bool {
	return errors.Is(err, errFindings) || errors.Is(err, errDiffers) || errors.Is(err, errWaits) ||
		errors.Is(err, errUnanswered) || errors.Is(err, errDoubts)
}

// isJob reports whether err comes from a job, whose exit code takes precedence over all others.
func isJob(err error) bool {
	_, ok := errors.AsType[*jobError](err)
	return ok
}

// app holds the state that all commands share.
type app struct {
	socket string
	json   bool
}

const longHelp = `Show the state of a zrlmpid daemon or of a job, send and receive messages through a daemon,
and analyze recordings of packets.

Exit codes:
  0    success
  1    failure: an echo differs, a rank refused, the daemon reported an error,
       or the output could not be written; analyze, doctor: problems found;
       reload: configuration refused; replay: the peer deviated from the recording
  2    invalid command line; decode, analyze, replay: the recording cannot be
       read; analyze: it contains no ZRLMPI packets
  3    no daemon answers on the control socket
  4    timed out
  5    why: ranks wait
  130  interrupted by SIGINT (Ctrl-C); 143 by SIGTERM. Commands that run until
       interrupted, such as top, exit with 0

run exits with the code of the rank that failed.

The daemon must run as root, as the same user, or as the user who owns the directory of its
socket in /run; ZRLMPI_SOCKET_OWNER names another user to trust.`

func newRoot() (*cobra.Command, *app) {
	a := new(app)
	socket := config.FindSocket()
	if s := os.Getenv(config.EnvControlSocket); s != "" {
		socket = s
	}
	root := &cobra.Command{
		Use: "zrlctl", Short: "Control a zrlmpid daemon", Long: longHelp,
		SilenceUsage: true, SilenceErrors: true, Version: version.String(),
		// Accept --socket before the command's name as a flag of zrlctl.
		TraverseChildren: true,
		Args:             unknownCommand,
		RunE:             func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(flagError)
	root.SetVersionTemplate("zrlctl {{.Version}}\n")
	a.addSocketFlag(root, socket)
	root.PersistentFlags().BoolVar(&a.json, "json", false,
		"output JSON, including errors; ping outputs an object a line")
	for _, cmd := range []*cobra.Command{
		a.statusCommand(), a.whyCommand(), a.topCommand(), a.ranksCommand(), a.pingCommand(), a.sendCommand(),
		a.recvCommand(), a.resetCommand(), a.reloadCommand(),
		a.captureCommand(), a.traceCommand(), a.doctorCommand(), a.bundleCommand(),
	} {
		a.addSocketFlag(cmd, socket)
		root.AddCommand(cmd)
	}
	root.AddCommand(a.decodeCommand(), a.analyzeCommand(), a.replayCommand(), a.impairCommand(), a.runCommand(),
		a.metricsCommand(), a.cosimCommand(), a.versionCommand())
	return root, a
}

const socketName = "socket"

// addSocketFlag adds the flag --socket to a command that uses the daemon.
func (a *app) addSocketFlag(cmd *cobra.Command, socket string) {
	cmd.Flags().StringVar(&a.socket, socketName, socket,
		"control socket of the daemon (or set "+config.EnvControlSocket+")")
}

func (a *app) client() *control.Client { return control.NewClient(a.socket) }

// operation wraps the errors of a command's function in operationError. All remaining errors come from cobra and
// concern the command line.
func operation(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := f(cmd, args); err != nil {
			return &operationError{err}
		}
		return nil
	}
}

// operationError is an error of an operation.
type operationError struct{ error }

func (e *operationError) Unwrap() error { return e.error }

// usageError is returned for an invalid command line.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

func usageErrorf(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// exitCode returns the exit code for an error.
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
	if _, ok := errors.AsType[*syntaxError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*unreadableError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*control.UnreachableError](err); ok {
		return exitUnreachable
	}
	switch {
	case errors.Is(err, errWaits):
		return exitWaits
	case errors.Is(err, errUnanswered), errors.Is(err, errDoubts):
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
		Use: "version", Short: "Print the version of zrlctl", Args: argCount(0, 0),
		RunE: operation(func(cmd *cobra.Command, _ []string) error {
			return a.print(cmd.OutOrStdout(), map[string]string{"version": version.String()}, "zrlctl %s\n",
				version.String())
		}),
	}
}
