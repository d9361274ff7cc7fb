package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/internal/launch"
)

type runFlags struct {
	ranks int
	label bool
	bind  string
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use: "run -n N PROGRAM [ARGUMENT…] [: -n N PROGRAM [ARGUMENT…]]…", Short: "Run a program as the ranks of a job on this host",
		Long: `Start N processes of a program on this host, as the ranks 0 to N−1 of a job. They find each
other through zrlctl, which is their launcher (PMI-1), and exchange messages through shared
memory. After a colon, further ranks run another program.

Lines of their output are printed whole, as they come. Rank 0 reads the standard input, the
others none. Signals are passed on; SIGINT, SIGTERM, SIGQUIT and SIGHUP end the job, and kill
it after a second. When a rank fails, the others are ended, and its exit code is that of
zrlctl: 128 and the number of the signal if one has ended it, 127 if the program was not
found, 126 if it could not be started, and 2 if the command line is wrong.

For several hosts use MPICH's mpiexec (mpiexec.hydra), which starts the same programs. Each
host's ranks are at the address from which packets to other networks are sent;
ZRLMPI_ADDRESS gives another one, or the network that it is in.`,
		Example: "  zrlctl run -n 4 ./app\n  zrlctl run -n 1 ./master : -n 3 ./worker --fast",
		RunE: operation(func(cmd *cobra.Command, args []string) error {
			return a.run(cmd, &f, args)
		}),
	}
	fl := cmd.Flags()
	fl.SetInterspersed(false) // what follows the program is its own
	fl.IntVarP(&f.ranks, "ranks", "n", 0, "number of ranks that run the program")
	fl.BoolVarP(&f.label, "label", "l", false, "begin each line of output with the number of its rank")
	fl.StringVar(&f.bind, "bind-to", "none", "bind ranks to processors in turn: core or none")
	return cmd
}

func (a *app) run(cmd *cobra.Command, f *runFlags, args []string) error {
	if f.bind != "core" && f.bind != "none" {
		return usagef("--bind-to %s: it is core or none", f.bind)
	}
	programs, err := parsePrograms(f.ranks, args)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, launch.Signals...)
	defer signal.Stop(signals)
	j := launch.Job{
		Programs: programs, Label: f.label, Bind: f.bind == "core", Signals: signals,
		Stdin: cmd.InOrStdin(), Stdout: cmd.OutOrStdout(), Stderr: cmd.ErrOrStderr(),
		Progress: func(text string) { fmt.Fprintf(cmd.ErrOrStderr(), "zrlctl: %s\n", text) },
	}
	if err := j.Run(); err != nil {
		return &jobError{err}
	}
	return nil
}

// jobError is the error of a job, whose exit code is that of a rank.
type jobError struct{ error }

func (e *jobError) Unwrap() error { return e.error }

// maxJob is the largest number of ranks of a job.
const maxJob = 4096

// parsePrograms reads the programs of a job, of which the first one has ranks.
func parsePrograms(ranks int, args []string) (programs []launch.Program, err error) {
	p, total := launch.Program{Ranks: ranks}, 0
	for rest := args; ; {
		end := len(rest)
		for i, arg := range rest {
			if arg == ":" {
				end = i
				break
			}
		}
		p.Args = rest[:end]
		switch {
		case len(p.Args) == 0:
			return nil, usagef("there is no program: zrlctl run -n N PROGRAM")
		case p.Ranks < 1:
			return nil, usagef("%s: how many ranks? Give -n N, at least 1", p.Args[0])
		}
		programs, total = append(programs, p), total+p.Ranks
		if total > maxJob {
			return nil, usagef("a job of %d ranks: it has at most %d on one host", total, maxJob)
		}
		if end == len(rest) {
			return programs, nil
		}
		if p, rest, err = parseNext(rest[end+1:]); err != nil {
			return nil, err
		}
	}
}

// parseNext reads the number of ranks that follows a colon.
func parseNext(args []string) (p launch.Program, rest []string, err error) {
	if len(args) > 0 {
		for _, name := range []string{"-n", "--ranks"} {
			switch value, is := strings.CutPrefix(args[0], name); {
			case !is:
			case value != "":
				p.Ranks, err = strconv.Atoi(strings.TrimPrefix(value, "="))
				rest = args[1:]
			case len(args) > 1:
				p.Ranks, err = strconv.Atoi(args[1])
				rest = args[2:]
			}
			if err != nil {
				return p, nil, usagef("%s: %w", args[0], errors.Unwrap(err))
			}
			if rest != nil {
				return p, rest, nil
			}
		}
	}
	return p, nil, usagef("after a colon: -n N PROGRAM")
}
