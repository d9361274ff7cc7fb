// Command zrlmpid runs ranks of a ZRLMPI cluster: host ranks, which programs attach to, and stand-ins for FPGAs.
//
// When every socket is bound and the control socket answers, it prints one line that starts with "ready". It logs to
// standard error, reads its configuration again on SIGHUP or, with --watch, when its file changes, and ends on SIGINT
// or SIGTERM.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon"
	"github.com/zrlmpi/zrlmpid/internal/privatedir"
	"github.com/zrlmpi/zrlmpid/internal/rlimit"
	"github.com/zrlmpi/zrlmpid/internal/version"
	"github.com/zrlmpi/zrlmpid/transport/bindfault"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// A second signal ends the process immediately.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run implements main. It receives the command line and the standard streams as parameters, so that tests can replace
// them.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	f, err := parseFlags(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		printError(stderr, err, exitUsage)
		if _, ok := errors.AsType[*syntaxError](err); ok {
			fmt.Fprint(stderr, usageForms+"zrlmpid --help lists the flags\n")
		}
		return exitUsage
	case f.version:
		return printResult(stdout, stderr, "zrlmpid "+version.String()+"\n")
	}
	watch := f.newWatch()
	cfg, source, err := f.loadConfig(stdin)
	if err != nil {
		return printError(stderr, err, exitUsage)
	}
	logged := daemon.NewLogWriter(stderr)
	defer logged.Close(logFlushTimeout)
	log, level, err := newLogger(cfg.Log, logged)
	if err != nil {
		return printError(stderr, err, exitUsage)
	}
	// From here on, SIGHUP does not end the process. The daemon handles the signal once it is ready.
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	d, err := daemon.New(cfg, daemon.Options{
		Log: log, LostLogLines: logged.Lost, LogTail: logged.Tail, Level: level, ReadyWriter: stdout,
		ConfigSource: f.absoluteSource(source), LoadConfig: f.reloadFunc(), ReloadSignals: reload,
		Watch: watch, StateDirectory: stateDirectory(),
	})
	if err != nil {
		return printError(stderr, err, exitUsage)
	}
	switch {
	case f.printConfig:
		text, err := cfg.YAML()
		if err != nil {
			return printError(stderr, err, exitFailure)
		}
		defaults, err := d.EffectiveDefaults()
		if err != nil {
			return printError(stderr, err, exitFailure)
		}
		return printResult(stdout, stderr, string(text)+defaults)
	case f.checkConfig:
		if err := d.CheckFiles(); err != nil {
			return printError(stderr, err, exitFailure)
		}
		return printResult(stdout, stderr, checkSummary(cfg, source))
	}
	// From here on, a write to a closed pipe does not end the daemon.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	d.LimitHeap()
	if err := d.Run(ctx); err != nil {
		code := exitCode(err)
		if code == exitFailure && underSystemd() {
			err = errors.Join(err, errTemporary)
		}
		return printError(logged, err, code)
	}
	return exitOK
}

// exitCode returns the exit code for a daemon that could not run. It returns exitUsage if only a change of the
// configuration can fix the error, so that a service manager does not restart the daemon.
func exitCode(err error) int {
	if _, ok := errors.AsType[*config.Error](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*bindfault.ListenError](err); ok && errors.Is(err, fs.ErrPermission) {
		return exitUsage // for example, the port requires a privilege
	}
	return exitFailure
}

// errTemporary is appended to an error whose cause may disappear without a change of the configuration, such as an
// address that is not configured yet.
var errTemporary = errors.New("exit code 1: zrlmpid.service restarts it every second, until it succeeds or is stopped")

// underSystemd reports whether systemd started this process as part of a unit.
func underSystemd() bool { return os.Getenv("SYSTEMD_EXEC_PID") == strconv.Itoa(os.Getpid()) }

// rootStateDir is the state directory of a daemon that runs as root.
const rootStateDir = "/var/lib/zrlmpid"

// stateDirectory returns the daemon's state directory: the directory that systemd created, or else /var/lib/zrlmpid for
// root and the user's state directory for others. It returns "" if the user does not have a home directory.
func stateDirectory() string {
	first, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":")
	switch {
	case filepath.IsAbs(first):
		return first
	case os.Geteuid() == 0:
		return rootStateDir
	}
	directory, err := privatedir.StatePath()
	if err != nil {
		return "" // the user has no home directory: keep no state
	}
	return directory
}

// logFlushTimeout limits the time for writing the last lines of the log before the daemon exits.
const logFlushTimeout = 500 * time.Millisecond

// checkSummary returns the text that --check-config prints for a valid configuration.
func checkSummary(cfg *config.Config, source string) string {
	var b strings.Builder
	for _, warning := range cfg.Warnings() {
		fmt.Fprintf(&b, "warning: %s\n", warning)
	}
	fmt.Fprintf(&b, "ok: %s: %d of %d ranks are local\n", source, len(cfg.LocalRanks()), len(cfg.Ranks))
	return b.String()
}

// printResult prints text as the result of the command and returns the exit code.
func printResult(stdout, stderr io.Writer, text string) int {
	if _, err := io.WriteString(stdout, text); err != nil {
		return printError(stderr, fmt.Errorf("standard output: %w", err), exitFailure)
	}
	return exitOK
}

// printError prints each error joined in err on a separate line, and returns code.
func printError(stderr io.Writer, err error, code int) int {
	for line := range strings.SplitSeq(rlimit.Descriptor(err).Error(), "\n") {
		fmt.Fprintf(stderr, "zrlmpid: %s\n", line)
	}
	return code
}
