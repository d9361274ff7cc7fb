package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/config/cluster"
)

// flags are the command line.
type flags struct {
	config, control, logLevel string
	checkConfig, printConfig  bool
	version                   bool
	http                      *string // nil if not given; empty disables HTTP

	cluster, addresses, kernel string
	hosts, fpgas               []int
	standins                   bool
}

// rankList returns the function that reads a flag such as 0,3 into list. An empty one is an
// empty list, not none.
func rankList(list *[]int) func(string) error {
	return func(s string) error {
		*list = []int{}
		for word := range strings.SplitSeq(s, ",") {
			if word == "" {
				continue
			}
			rank, err := strconv.Atoi(strings.TrimSpace(word))
			if err != nil {
				return fmt.Errorf("%q is not a rank: give a number", word)
			}
			*list = append(*list, rank)
		}
		return nil
	}
}

const usage = `Usage: zrlmpid -config FILE [flags]
       zrlmpid -cluster FILE [-addresses POOL] [-standins] [flags]

Run the local ranks of a ZRLMPI cluster: hosts for programs, and stand-ins for FPGAs.
A line that starts with "ready" is printed when all sockets are bound.

SIGHUP reloads the configuration with the same flags, without interrupting messages. A
configuration that is invalid or needs a restart is refused as a whole, and the log says
why. SIGINT or SIGTERM stops zrlmpid: messages in progress have the configuration's
stop_timeout to complete. A second signal ends it immediately. zrlmpid does not wait for
its log: lines that cannot be written are lost, and counted.

Exit codes: 0 stopped by a signal, 1 failure, 2 invalid flags or configuration.

Flags:
`

// parseFlags reads the command line. The error is flag.ErrHelp if help was requested, which
// is then printed.
func parseFlags(args []string, stderr io.Writer) (*flags, error) {
	f := new(flags)
	set := f.set()
	if err := set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(stderr, usage)
			set.SetOutput(stderr)
			set.PrintDefaults()
		}
		return nil, err
	}
	return f, f.check(set)
}

// set returns the flag set.
func (f *flags) set() *flag.FlagSet {
	set := flag.NewFlagSet("zrlmpid", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&f.config, "config", "", "configuration `file` (-: standard input)")
	set.BoolVar(&f.checkConfig, "check-config", false, "check the configuration, print its errors, and exit")
	set.BoolVar(&f.printConfig, "print-config", false, "print the configuration with all defaults, and exit")
	set.StringVar(&f.cluster, "cluster", "", "`file` in place of a configuration: upstream's cluster.json or the answer of the resource manager")
	set.StringVar(&f.addresses, "addresses", "", "with -cluster: address `pool` for the ranks, as in 127.0.0.1-127.0.0.4 or 10.1.0.0/24")
	set.BoolVar(&f.standins, "standins", false, "with -cluster: run stand-ins for all FPGA ranks")
	set.StringVar(&f.kernel, "kernel", "", "with -cluster: `kernel` of the stand-ins: echo, ring, sink, source, jacobi, kmeans, matvec, backsub or \"exec:/path/prog args\"")
	set.Func("host", "with -cluster: `ranks` of host programs, as in 0,3 (default: the first CPU rank)", rankList(&f.hosts))
	set.Func("fpga", "with -cluster: `ranks` that are FPGAs now, of those that the file lists as both CPU and FPGA", rankList(&f.fpgas))
	set.StringVar(&f.control, "control", "", "control `socket`; overrides configuration and environment")
	set.Func("http", "`address` of status page, metrics and health, as in 127.0.0.1:9627; \"\" disables HTTP; overrides configuration and environment",
		func(s string) error { f.http = &s; return nil })
	set.StringVar(&f.logLevel, "log-level", "", "log `level`: debug, info, warn or error; overrides configuration and environment")
	set.BoolVar(&f.version, "version", false, "print the version and exit")
	return set
}

// check refuses flags that have no effect.
func (f *flags) check(set *flag.FlagSet) error {
	given := make(map[string]bool)
	set.Visit(func(fl *flag.Flag) { given[fl.Name] = true })
	switch {
	case set.NArg() > 0:
		return fmt.Errorf("%q is not a flag: give the configuration with -config FILE", set.Arg(0))
	case f.version:
		return nil
	case given["config"] == given["cluster"]:
		return errors.New("give either -config FILE or -cluster FILE; -help lists all flags")
	case f.checkConfig && f.printConfig:
		return errors.New("give -check-config or -print-config, not both")
	}
	for _, name := range []string{"addresses", "standins", "kernel", "host", "fpga"} {
		if given[name] && !given["cluster"] {
			return fmt.Errorf("-%s: only valid with -cluster", name)
		}
	}
	return nil
}

// load reads the configuration, and returns its source.
func (f *flags) load(stdin io.Reader) (cfg *config.Config, source string, err error) {
	switch {
	case f.cluster != "":
		source = f.cluster
		cfg, err = f.fromCluster()
	case f.config == "-":
		source = "standard input"
		cfg, err = config.Parse(stdin, source)
	default:
		source = f.config
		cfg, err = config.Load(source) // applies the environment
	}
	if err != nil {
		return nil, source, err
	}
	if f.cluster != "" || f.config == "-" {
		if err := cfg.ApplyEnv(os.LookupEnv); err != nil {
			return nil, source, err
		}
	}
	if f.control != "" {
		cfg.Control.Socket = f.control
	}
	if f.http != nil {
		cfg.ListenHTTP(*f.http)
	}
	if f.logLevel != "" {
		cfg.Log.Level = f.logLevel
	}
	return cfg, source, cfg.Validate()
}

// reload returns a function that reads the configuration again, with the same flags. It is
// nil for standard input.
func (f *flags) reload() func() (*config.Config, error) {
	if f.config == "-" {
		return nil
	}
	return func() (*config.Config, error) {
		cfg, _, err := f.load(nil)
		return cfg, err
	}
}

func (f *flags) fromCluster() (*config.Config, error) {
	c, err := cluster.Load(f.cluster)
	if err != nil {
		return nil, err
	}
	opts := cluster.Options{StandIns: f.standins, Kernel: f.kernel, Host: f.hosts, FPGA: f.fpgas}
	if f.addresses != "" {
		if opts.Addresses, err = cluster.ParsePool(f.addresses); err != nil {
			return nil, err
		}
	}
	return c.Config(opts)
}
