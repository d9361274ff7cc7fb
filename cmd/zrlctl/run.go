package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zrlmpi/zrlmpid/internal/jobs"
	"github.com/zrlmpi/zrlmpid/internal/launch"
)

type runFlags struct {
	program programFlags
	label   bool
	verbose bool
	bind    string
	trace   string
	hosts   []string
	cluster clusterFlags
}

// programFlags holds the flags for one program of a job. The flags for the first program precede its name; those for
// each further program follow the colon that introduces it.
type programFlags struct {
	ranks int
	env   []string
	dir   string
}

func (p *programFlags) addTo(fl *pflag.FlagSet) {
	fl.SetInterspersed(false) // later flags are arguments of the program
	fl.IntVarP(&p.ranks, "ranks", "n", 0, "number of ranks that run the program; also -np")
	fl.StringArrayVar(&p.env, "env", nil,
		"variable of the program's environment, NAME=VALUE; may be given several times")
	fl.StringVar(&p.dir, "wdir", "", "working directory of the program")
}

func (a *app) runCommand() *cobra.Command {
	var flags runFlags
	cmd := &cobra.Command{
		Use:   "run -n N PROGRAM [ARGUMENT…] [: -n N PROGRAM [ARGUMENT…]]…",
		Short: "Run a program as the ranks of a job on this host",
		Long: `Start N processes of a program on this host, as the ranks 0 to N−1 of a job. zrlctl is their
launcher (PMI-1); the ranks exchange messages through shared memory. After a colon, further
ranks run another program, with their own -n, --env and --wdir.

Output is printed in whole lines as it is produced. Rank 0 reads standard input; the other
ranks have none. Signals are forwarded. SIGINT, SIGTERM, SIGQUIT and SIGHUP end the job; it is
killed after a second. When a rank fails, zrlctl ends the other ranks and exits with the code
of the failed rank: 128 plus the number of the signal that ended it, 127 if the program was
not found, 126 if it could not be started, and 2 if the command line is wrong.

With --cluster or --config, the job also includes FPGAs. CPU ranks run the programs in rank
order; -n is optional if there is only one program. --cluster reads the file of upstream's
tools, whose ranks need --addresses, or the answer of the resource manager. --config reads a
configuration of zrlmpid, in which ranks with run: host are the CPU ranks. CPU ranks use the
profile cloudfpga with FPGAs and the extended profile with each other. With --stand-in,
stand-ins that run a kernel replace the FPGAs on this host; the ranks of --cluster then
default to the addresses 127.0.0.1, 127.0.0.2 and so on. All CPU ranks must have addresses of
this host with free ports; zrlctl checks this before it starts anything. The kernels echo and
sink serve every rank that sends to them.

A job with FPGAs ends with an error if an FPGA sends no answer within --fpga-timeout (2m) of a
rank's first message to it, or if the kernel of a stand-in has only failed for that time. 0s
disables the limit.

A program that was built for Open MPI only recognizes Open MPI's launcher, so each of its
processes becomes a world of one rank. This ends the job with an error. -v prints the MPI
library that each program loaded; a program built for MPICH may load any compatible one.

--trace records the packets of the job, for zrlctl analyze and decode. Packets of a role in
simulation include its cycle, for zrlctl cosim waves. --trace needs the permission to open
packet sockets (CAP_NET_RAW). Messages that would use shared memory use UDP instead; in a job
without FPGAs, between 127.0.0.1, 127.0.0.2 and so on.

On several hosts, zrlctl runs another launcher instead, and prints its name: MPICH's
mpiexec.hydra on the hosts of --hosts or of the file that HYDRA_HOST_FILE names, after a check
that each host answers ssh and has the program; or srun --mpi=pmi2, in a Slurm allocation of
several nodes or from outside its node. Exit code and output are the launcher's. FPGAs then
need --config with a file that all hosts have. The ranks of a host use the address from which
it reaches other networks; ZRLMPI_ADDRESS sets another address, or the network that contains it.`,
		Example: `  zrlctl run -n 4 ./app
  zrlctl run -n 1 ./master : -n 3 ./worker --fast
  zrlctl run --hosts node1,node2 -n 8 ./app
  zrlctl run --cluster cluster.json --addresses 10.12.0.1-10.12.0.4 ./app
  zrlctl run --cluster cluster.json --stand-in jacobi ./jacobi`,
		RunE: operation(func(cmd *cobra.Command, args []string) error {
			return a.run(cmd, &flags, args)
		}),
	}
	fl := cmd.Flags()
	flags.program.addTo(fl)
	fl.BoolVarP(&flags.label, "label", "l", false, "begin each line of output with the number of its rank")
	fl.BoolVarP(&flags.verbose, "verbose", "v", false, "print which MPI library the programs use")
	fl.StringVar(&flags.bind, "bind-to", "none", "bind ranks to processors in turn: core or none")
	flags.cluster.addTo(fl)
	fl.StringSliceVar(&flags.hosts, "hosts", nil,
		"hosts that run the job, through mpiexec.hydra: names or addresses, each with an optional :N for N ranks at a time")
	fl.StringVar(&flags.trace, "trace", "", "record the packets of the job in this pcapng file")
	return cmd
}

func (a *app) run(cmd *cobra.Command, flags *runFlags, args []string) error {
	if flags.bind != "core" && flags.bind != "none" {
		return usageErrorf("--bind-to %s: must be core or none", flags.bind)
	}
	if err := checkHosts(flags.hosts); err != nil {
		return usageErrorf("--hosts %s: %w", strings.Join(flags.hosts, ","), err)
	}
	stderr := &lockedWriter{out: cmd.ErrOrStderr()}
	say := func(text string) { fmt.Fprintf(stderr, "zrlctl: %s\n", text) }
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, launch.Signals...)
	defer signal.Stop(signals)
	job := launch.Job{
		Name: fmt.Sprintf("zrlctl_%d", os.Getpid()), Label: flags.label, Bind: flags.bind == "core", Signals: signals,
		Stdin: cmd.InOrStdin(), Stdout: cmd.OutOrStdout(), Stderr: stderr, Progress: say,
	}
	if flags.verbose {
		job.Verbose = say
	}
	cluster, err := flags.cluster.load()
	if err != nil {
		return &usageError{err}
	}
	if cluster != nil && flags.program.ranks == 0 && !slices.Contains(args, ":") {
		flags.program.ranks = len(cluster.ranks)
	}
	if job.Programs, err = parsePrograms(flags.program, args); err != nil {
		return err
	}
	if e, err := flags.externalLaunch(); err != nil {
		return err
	} else if e != nil {
		return flags.launchExternally(cmd.Context(), e, &job, cluster, say)
	}
	if cluster == nil && flags.trace != "" {
		cluster = loopbackCluster(job.Programs)
	}
	directory, warning, err := jobs.Make(job.Name)
	if err == nil {
		err = warning
	}
	if err != nil {
		say("warning: " + err.Error())
	}
	if directory != "" {
		job.Env = []string{jobs.EnvDirectory + "=" + directory}
		defer func() {
			if err := jobs.Remove(directory); err != nil {
				say("warning: " + err.Error())
			}
		}()
	}
	if cluster == nil {
		return asJobError(job.Run())
	}
	job.ProcessRanks = cluster.places()
	if err := cluster.checkPrograms(job.Programs); err != nil {
		return err
	}
	for _, warning := range cluster.cfg.Warnings() {
		say("warning: " + warning)
	}
	end, err := cluster.startHelpers(cmd.Context(), &job, directory, flags.trace, stderr, signals)
	if err != nil {
		return err
	}
	err = job.Run()
	if failed := end(); failed != nil {
		_, first := errors.AsType[*standInError](failed)
		if _, ended := errors.AsType[*launch.SignalError](err); err == nil || first && ended {
			return failed
		}
		say(failed.Error())
	}
	return asJobError(err)
}

// lockedWriter is a writer for several goroutines.
type lockedWriter struct {
	mu  sync.Mutex
	out io.Writer
}

func (w *lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(b)
}

// jobError reports that a job failed. zrlctl then exits with the exit code of one of the job's ranks.
type jobError struct{ error }

func (e *jobError) Unwrap() error { return e.error }

func asJobError(err error) error {
	if err == nil {
		return nil
	}
	return &jobError{err}
}

// maxJobRanks is the maximum number of ranks in a job.
const maxJobRanks = 4096

// parsePrograms parses the programs of a job. first holds the flags of the first program.
func parsePrograms(first programFlags, args []string) (programs []launch.Program, err error) {
	total := 0
	for flags, rest := first, args; ; {
		end := len(rest)
		if i := slices.Index(rest, ":"); i >= 0 {
			end = i
		}
		program := launch.Program{Ranks: flags.ranks, Args: rest[:end], Env: flags.env, Dir: flags.dir}
		switch {
		case len(program.Args) == 0:
			return nil, usageErrorf("there is no program: zrlctl run -n N PROGRAM")
		case program.Ranks < 1:
			return nil, usageErrorf("%s: the number of ranks is missing: give -n N, at least 1", program.Args[0])
		}
		for _, variable := range program.Env {
			if name, _, ok := strings.Cut(variable, "="); !ok || name == "" {
				return nil, usageErrorf("--env %q: write NAME=VALUE", variable)
			}
		}
		programs, total = append(programs, program), total+program.Ranks
		if total > maxJobRanks {
			return nil, usageErrorf("a job of %d ranks: at most %d are supported on one host", total, maxJobRanks)
		}
		if end == len(rest) {
			return programs, nil
		}
		if flags, rest, err = parseNext(rest[end+1:]); err != nil {
			return nil, err
		}
	}
}

// expandFlags replaces -np, the spelling of other launchers, with -n. It does not change the programs' arguments.
func expandFlags(fl *pflag.FlagSet, args []string) []string {
	args = slices.Clone(args)
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch name, _, hasValue := strings.Cut(arg, "="); {
		case arg == "-np":
			args[i] = "-n"
			i++
		case len(arg) < 2 || arg[0] != '-' || arg == "--":
			return args
		case hasValue:
		case arg[1] == '-':
			if f := fl.Lookup(name[2:]); f != nil && f.NoOptDefVal == "" {
				i++
			}
		default:
			if f := fl.ShorthandLookup(arg[len(arg)-1:]); f != nil && f.NoOptDefVal == "" {
				i++
			}
		}
	}
	return args
}

// parseNext parses the flags after a colon.
func parseNext(args []string) (flags programFlags, rest []string, err error) {
	fl := pflag.NewFlagSet("", pflag.ContinueOnError)
	fl.Usage = func() {}
	flags.addTo(fl)
	if err := fl.Parse(expandFlags(fl, args)); err != nil {
		return flags, nil, usageErrorf("after a colon: %w", err)
	}
	return flags, fl.Args(), nil
}
