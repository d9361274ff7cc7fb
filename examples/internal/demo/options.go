package demo

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// options are the flags that all examples have.
type options struct {
	ranks   int
	profile config.Profile
	timeout time.Duration
	json    bool
}

// usageError is a mistake in the command line.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// longest is how long an example may take if the user does not say.
const longest = time.Minute

// parse reads the command line.
func parse(info Info, e Example, args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet(info.Name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.IntVar(&o.ranks, "ranks", info.Ranks, "how many `ranks` to start in this process")
	f.TextVar(&o.profile, "profile", config.Profile(protocol.CloudFPGA), "how these ranks talk to each other: the `profile` cloudfpga, v0.9 or extended")
	f.DurationVar(&o.timeout, "timeout", longest, "when to give up")
	f.BoolVar(&o.json, "json", false, "print the result as JSON instead of as a table")
	e.Flags(f)
	err := f.Parse(args)
	if err == flag.ErrHelp { //nolint:errorlint // as it is documented
		usage(info, f, stderr)
		return o, err
	}
	switch {
	case err != nil:
	case f.NArg() > 0:
		err = fmt.Errorf("%q is no flag", f.Arg(0))
	case o.timeout <= 0:
		err = fmt.Errorf("-timeout %v leaves no time", o.timeout)
	case inEnvironment():
		f.Visit(func(given *flag.Flag) {
			if given.Name == "ranks" || given.Name == "profile" {
				err = fmt.Errorf("-%s is for ranks that the example starts, but %s or %s is set, which says what the cluster is like",
					given.Name, mpi.EnvSocket, mpi.EnvConfig)
			}
		})
	case o.ranks < 1:
		err = fmt.Errorf("-ranks %d: there is at least one", o.ranks)
	default:
		err = e.Check(o.ranks)
	}
	if err != nil {
		return o, usagef("%w; -help lists the flags", err)
	}
	return o, nil
}

func usage(info Info, f *flag.FlagSet, w io.Writer) {
	fmt.Fprintf(w, `%s: %s

It starts all ranks in this process, over UDP on the loopback interface. With
%s (a daemon's attach socket), or with %s (a configuration
file) and %s, it is one rank of that cluster instead.

Exit codes: 0 the result is right, 1 it is wrong or something failed, 2 usage.

`, info.Name, info.Summary, mpi.EnvSocket, mpi.EnvConfig, mpi.EnvRank)
	f.SetOutput(w)
	f.PrintDefaults()
}

// inEnvironment reports whether mpi.Init is told what to be.
func inEnvironment() bool { return os.Getenv(mpi.EnvSocket) != "" || os.Getenv(mpi.EnvConfig) != "" }
