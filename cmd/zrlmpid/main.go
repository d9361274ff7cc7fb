// Command zrlmpid runs ranks of a ZRLMPI cluster: host ranks, which programs
// attach to, and stand-ins for FPGAs.
//
// It prints one line that starts with "ready" when every socket is bound and the
// control socket answers, logs to standard error, reads its configuration again at
// SIGHUP, and ends at SIGINT or SIGTERM.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon"
	"github.com/zrlmpi/zrlmpid/daemon/control"
)

// The exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is main with its environment as arguments.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	f, err := parseFlags(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fail(stderr, err, exitUsage)
		if _, ok := errors.AsType[*lineError](err); ok {
			fmt.Fprint(stderr, usageLines+"zrlmpid --help lists the flags\n")
		}
		return exitUsage
	case f.version:
		return show(stdout, stderr, "zrlmpid "+control.Version()+"\n")
	}
	cfg, source, err := f.load(stdin)
	if err != nil {
		return fail(stderr, err, exitUsage)
	}
	logged := daemon.NewLogWriter(stderr)
	defer logged.Close(logFlush)
	log, level, err := newLogger(cfg.Log, logged)
	if err != nil {
		return fail(stderr, err, exitUsage)
	}
	// From here on SIGHUP does not end the process; the daemon handles it when it is ready.
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	d, err := daemon.New(cfg, daemon.Options{
		Log: log, LostLogLines: logged.Lost, Level: level, Ready: stdout, Source: source, Load: f.reload(), Reload: reload,
	})
	if err != nil {
		return fail(stderr, err, exitUsage)
	}
	switch {
	case f.printConfig:
		text, err := cfg.YAML()
		if err != nil {
			return fail(stderr, err, exitFailure)
		}
		return show(stdout, stderr, string(text))
	case f.checkConfig:
		return show(stdout, stderr, checked(cfg, source))
	}
	// From here on a closed output does not end the daemon.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	d.LimitHeap()
	if err := d.Run(ctx); err != nil {
		return fail(logged, err, exitFailure)
	}
	return exitOK
}

// logFlush bounds the time to write the last lines of the log.
const logFlush = 500 * time.Millisecond

// checked returns the output of --check-config for a valid configuration.
func checked(cfg *config.Config, source string) string {
	var b strings.Builder
	for _, warning := range cfg.Warnings() {
		fmt.Fprintf(&b, "warning: %s\n", warning)
	}
	fmt.Fprintf(&b, "ok: %s: %d of %d ranks are local\n", source, len(cfg.Local()), len(cfg.Ranks))
	return b.String()
}

// show prints the requested text.
func show(stdout, stderr io.Writer, text string) int {
	if _, err := io.WriteString(stdout, text); err != nil {
		return fail(stderr, fmt.Errorf("standard output: %w", err), exitFailure)
	}
	return exitOK
}

// fail prints every error that err joins on a line of its own.
func fail(stderr io.Writer, err error, code int) int {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintf(stderr, "zrlmpid: %s\n", line)
	}
	return code
}
