// Bench measures zrlmpid beside the MPI libraries that are installed on the same
// machine, in one run: rounds of all sides in turn, of which it reports medians.
//
//	go run ./bench queues     how the number of posted receives weighs on a message
//	go run ./bench pingpong   how long a message takes, by its length
//	go run ./bench show FILE  tables and plots of an earlier run
//
// It runs the ranks of zrlmpid in processes of their own, and compiles the peers'
// programs from bench/c. Every message is verified, at both ends.
//
// It must never judge the code: no test fails because of a figure.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

const usage = `usage: bench queues|pingpong [flags]
       bench show [flags] FILE

`

// errUsage is a mistake that the user has been told of.
var errUsage = errors.New("usage")

// run returns the exit code: 0, 1 for a failure, 2 for a mistake in the arguments.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	command := ""
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	var err error
	switch command {
	case rankCommand:
		err = runRank(ctx, args, stdout, stderr)
	case "show":
		err = show(args, stdout, stderr)
	default:
		w, ok := workloads[command]
		if !ok {
			fmt.Fprint(stderr, usage)
			return 2
		}
		err = measure(ctx, w, args, stdout, stderr)
	}
	switch {
	case errors.Is(err, errUsage):
		return 2
	case err != nil:
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return 1
	}
	return 0
}

// output is where the results go.
type output struct {
	json, svg string
	markdown  bool
}

func (o *output) flags(f *flag.FlagSet) {
	f.StringVar(&o.json, "json", "", "write all figures to this `file`")
	f.StringVar(&o.svg, "svg", "", "draw the plots into this `folder`")
	f.BoolVar(&o.markdown, "markdown", false, "print the tables as Markdown")
}

// write prints the tables and writes the files that were asked for.
func (o *output) write(r *report, stdout io.Writer) error {
	if err := r.print(stdout, o.markdown); err != nil {
		return err
	}
	if o.json != "" {
		if err := r.save(o.json); err != nil {
			return err
		}
	}
	if o.svg != "" {
		return r.draw(o.svg)
	}
	return nil
}

// parse parses flags, and has the usage printed with mistakes.
func parse(f *flag.FlagSet, args []string, stderr io.Writer, positional int) error {
	f.SetOutput(stderr)
	if err := f.Parse(args); err != nil {
		return errUsage
	}
	if f.NArg() != positional {
		fmt.Fprintf(stderr, "%s takes %d arguments besides its flags, and not %d\n%s", f.Name(), positional, f.NArg(), usage)
		return errUsage
	}
	return nil
}

func show(args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("show", flag.ContinueOnError)
	var out output
	out.flags(f)
	if err := parse(f, args, stderr, 1); err != nil {
		return err
	}
	r, err := load(f.Arg(0))
	if err != nil {
		return err
	}
	return out.write(r, stdout)
}
