package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/config/cluster"
	"github.com/zrlmpi/zrlmpid/daemon"
	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
)

// flags holds the values of the command line flags.
type flags struct {
	config, control, logLevel string
	checkConfig, printConfig  bool
	version, watch            bool
	http                      *string // nil if not given; empty disables HTTP

	cluster, addresses, kernel string
	hosts, fpgas               []int
	standins                   bool
}

// parseRankList returns a function that parses a flag such as 0,3 and stores the ranks in list. For an empty flag it
// stores an empty list, not nil.
func parseRankList(list *[]int) func(string) error {
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

const usage = usageForms + `

Run the local ranks of a ZRLMPI cluster: hosts for programs, and stand-ins for FPGAs.
A line that starts with "ready" is printed when all sockets are bound.

SIGHUP reloads the configuration with the same flags, without interrupting messages, and
with --watch so does a change of its file or its TLS files. A configuration that is invalid
or needs a restart is rejected as a whole, and the reason is logged. SIGINT or SIGTERM stops
zrlmpid: messages in progress may complete within the configuration's stop_timeout. A second
signal ends it immediately. zrlmpid never waits for its log: lines that cannot be written
are dropped and counted.

Exit codes: 0 stopped by a signal; 1 failure that may be temporary, such as an address that
is not configured yet; 2 invalid flags or configuration, which only an edit can fix.

Flags:
`

// usageForms shows the forms of the command line.
const usageForms = `usage: zrlmpid --config FILE [flags]
       zrlmpid --cluster FILE [--addresses POOL] [--standins] [flags]
`

// parseFlags parses the command line. If help is requested, it prints the help and returns flag.ErrHelp.
func parseFlags(args []string, stderr io.Writer) (*flags, error) {
	f := new(flags)
	set := f.newFlagSet()
	if err := set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(stderr, usage)
			printFlags(stderr, set)
			return nil, err
		}
		return nil, flagError(err, set)
	}
	return f, f.validate(set)
}

// printFlags lists the flags with two dashes, as zrlctl does. The flags also accept a single dash.
func printFlags(out io.Writer, set *flag.FlagSet) {
	set.VisitAll(func(fl *flag.Flag) {
		value, text := flag.UnquoteUsage(fl)
		fmt.Fprintf(out, "  --%s\n    \t%s\n", strings.TrimSpace(fl.Name+" "+value), text)
	})
}

// syntaxError reports invalid syntax of the command line. The usage is printed after it.
type syntaxError struct{ error }

func syntaxErrorf(format string, args ...any) error { return &syntaxError{fmt.Errorf(format, args...)} }

// flagError converts an error from package flag to an error written for the user.
func flagError(err error, set *flag.FlagSet) error {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		names := []string{"--help"}
		set.VisitAll(func(fl *flag.Flag) { names = append(names, "--"+fl.Name) })
		return syntaxErrorf("there is no flag --%s%s", name, strictyaml.SuggestName("--"+name, names))
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: -"); ok {
		value := "value"
		if fl := set.Lookup(name); fl != nil {
			value, _ = flag.UnquoteUsage(fl)
		}
		return syntaxErrorf("--%s needs a value: --%s %s", name, name, strings.ToUpper(value))
	}
	return syntaxErrorf("%s", strings.Replace(text, " -", " --", 1))
}

// newFlagSet returns a flag set whose flags store their values in f.
func (f *flags) newFlagSet() *flag.FlagSet {
	set := flag.NewFlagSet("zrlmpid", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&f.config, "config", "", "configuration `file` (-: standard input)")
	set.BoolVar(&f.checkConfig, "check-config", false,
		"check the configuration and its TLS files, print the errors, and exit")
	set.BoolVar(&f.printConfig, "print-config", false,
		"print the configuration with all defaults, and as comments the effective options of links, and exit")
	set.StringVar(&f.cluster, "cluster", "",
		"`file` instead of a configuration: upstream's cluster.json or the answer of the resource manager")
	set.StringVar(&f.addresses, "addresses", "",
		"with --cluster: address `pool` for the ranks, as in 127.0.0.1-127.0.0.4 or 10.1.0.0/24")
	set.BoolVar(&f.standins, "standins", false, "with --cluster: run stand-ins for all FPGA ranks")
	set.StringVar(&f.kernel, "kernel", "", "with --cluster: `kernel` of the stand-ins: echo, ring, sink, source, "+
		"jacobi, kmeans, matvec, backsub, \"exec:/path/prog args\" or \"rtl:/path/simulator args\"")
	set.Func("host", "with --cluster: `ranks` of host programs, as in 0,3 (default: the first CPU rank)",
		parseRankList(&f.hosts))
	set.Func("fpga", "with --cluster: `ranks` to treat as FPGAs, if the file lists them as both CPU and FPGA",
		parseRankList(&f.fpgas))
	set.StringVar(&f.control, "control", "", "control `socket`; overrides configuration and environment")
	set.Func("http", "`address` of status page, metrics and health, as in 127.0.0.1:9627; \"\" disables HTTP; "+
		"overrides configuration and environment",
		func(s string) error { f.http = &s; return nil })
	set.StringVar(&f.logLevel, "log-level", "",
		"log `level`: debug, info, warn or error; overrides configuration and environment")
	set.BoolVar(&f.version, "version", false, "print the version and exit")
	set.BoolVar(&f.watch, "watch", false, "reload the configuration when its file or its TLS files change, "+
		"as in a volume of Kubernetes")
	return set
}

// validate rejects flags that have no effect.
func (f *flags) validate(set *flag.FlagSet) error {
	given := make(map[string]bool)
	set.Visit(func(fl *flag.Flag) { given[fl.Name] = true })
	switch {
	case set.NArg() > 0:
		return syntaxErrorf("%q is not a flag: give the configuration with --config FILE", set.Arg(0))
	case f.version:
		return nil
	case given["config"] == given["cluster"]:
		return syntaxErrorf("give either --config FILE or --cluster FILE")
	case f.checkConfig && f.printConfig:
		return syntaxErrorf("give --check-config or --print-config, not both")
	case f.watch && f.config == "-":
		return syntaxErrorf("--watch: standard input cannot be read a second time")
	}
	for _, name := range []string{"addresses", "standins", "kernel", "host", "fpga"} {
		if given[name] && !given["cluster"] {
			return syntaxErrorf("--%s: only valid with --cluster", name)
		}
	}
	return nil
}

// loadConfig reads the configuration. It returns the configuration and the name of its source.
func (f *flags) loadConfig(stdin io.Reader) (cfg *config.Config, source string, err error) {
	switch {
	case f.cluster != "":
		source = f.cluster
		cfg, err = f.fromCluster()
	case f.config == "-":
		source = "standard input"
		cfg, err = config.Parse(stdin, source)
	default:
		source = f.config
		cfg, err = config.Load(source) // Load also applies the environment
	}
	if err != nil {
		return nil, source, err
	}
	if f.cluster != "" || f.config == "-" {
		if err := cfg.ApplyEnv(os.LookupEnv); err != nil {
			return nil, source, err
		}
	}
	if err := cfg.Validate(); err != nil {
		return nil, source, err
	}
	return cfg, source, f.override(cfg)
}

// absoluteSource returns the absolute path of a source, for a reader who does not know the daemon's working directory.
func (f *flags) absoluteSource(source string) string {
	if f.config == "-" {
		return source
	}
	if path, err := filepath.Abs(source); err == nil {
		return path
	}
	return source
}

// override applies the flags that override settings of cfg, which must be valid. Its errors name the flag, not the
// file.
func (f *flags) override(cfg *config.Config) error {
	for _, o := range []struct {
		flag  string
		given bool
		apply func()
	}{
		{"control", f.control != "", func() { cfg.Control.Socket = &f.control }},
		{"http", f.http != nil, func() { cfg.SetHTTPListen(*f.http) }},
		{"log-level", f.logLevel != "", func() { cfg.Log.Level = f.logLevel }},
	} {
		if !o.given {
			continue
		}
		o.apply()
		err := cfg.Validate()
		if e, ok := errors.AsType[*config.Error](err); ok {
			return fmt.Errorf("--%s: %s", o.flag, e.Problem)
		}
		if err != nil {
			return fmt.Errorf("--%s: %w", o.flag, err)
		}
	}
	return nil
}

// watchInterval is the interval between two checks of the configuration's files. Kubernetes updates files of a volume
// about a minute after the object, so shorter intervals would gain nothing.
const watchInterval = 2 * time.Second

// newWatch returns a watch of the configuration's file, or nil without --watch. It must be called before the
// configuration is loaded.
func (f *flags) newWatch() *daemon.ConfigWatch {
	if !f.watch {
		return nil
	}
	return daemon.NewConfigWatch(f.absoluteSource(cmp.Or(f.cluster, f.config)), watchInterval)
}

// reloadFunc returns a function that reads the configuration again with the same flags. It returns nil if the
// configuration was read from standard input.
func (f *flags) reloadFunc() func() (*config.Config, error) {
	if f.config == "-" {
		return nil
	}
	return func() (*config.Config, error) {
		cfg, _, err := f.loadConfig(nil)
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
