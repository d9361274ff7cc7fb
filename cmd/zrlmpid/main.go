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

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/control"
	"github.com/zrlmpi/zrlmpid/daemon"
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

// run is main with everything that it touches as an argument.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	f, err := parseFlags(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return fail(stderr, err, exitUsage)
	case f.version:
		fmt.Fprintf(stdout, "zrlmpid %s\n", control.Version())
		return exitOK
	}
	cfg, source, err := f.load(stdin)
	if err != nil {
		return fail(stderr, err, exitUsage)
	}
	log, level, err := newLogger(cfg.Log, stderr)
	if err != nil {
		return fail(stderr, err, exitUsage)
	}
	// From here on SIGHUP does not end the process; the daemon heeds it when it is ready.
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	d, err := daemon.New(cfg, daemon.Options{
		Log: log, Level: level, Ready: stdout, Source: source, Load: f.reload(), Reload: reload,
	})
	if err != nil {
		return fail(stderr, err, exitUsage)
	}
	switch {
	case f.printConfig:
		return printConfig(cfg, stdout, stderr)
	case f.checkConfig:
		for _, warning := range cfg.Warnings() {
			fmt.Fprintf(stdout, "warning: %s\n", warning)
		}
		fmt.Fprintf(stdout, "ok: %s: %d of %d ranks run here\n", source, len(cfg.Local()), len(cfg.Ranks))
		return exitOK
	}
	d.LimitHeap()
	if err := d.Run(ctx); err != nil {
		return fail(stderr, err, exitFailure)
	}
	return exitOK
}

func printConfig(cfg *config.Config, stdout, stderr io.Writer) int {
	text, err := cfg.YAML()
	if err == nil {
		_, err = stdout.Write(text)
	}
	if err != nil {
		return fail(stderr, err, exitFailure)
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
