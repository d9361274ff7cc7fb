package demo

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// Example is a program of one rank.
type Example interface {
	// Flags declares the example's own flags.
	Flags(f *flag.FlagSet)
	// Check refuses flags that cannot be, in a cluster of so many ranks.
	Check(ranks int) error
	// Run is the program. Rank 0 returns the result, all others nil. The
	// same Example is run by several ranks at once.
	Run(ctx context.Context, world *mpi.Comm) (Result, error)
}

// Series is an Example that is run by clusters of several sizes.
type Series interface {
	Example
	// Clusters says how many ranks there are in each cluster that is started, one
	// after another, if the user wants so many ranks. Rank 0 of each returns the
	// result of all up to now.
	Clusters(ranks int) []int
}

// Result is what rank 0 has found out. It is encoded as JSON.
type Result interface {
	// Table prints the result.
	Table(w io.Writer)
	// Wrong says in what it differs from what it should be, or is "".
	Wrong() string
}

// Info is what there is to say of an example without running it.
type Info struct {
	Name, Summary string
	// Ranks is how many there are if the user does not say.
	Ranks int
}

// The exit codes.
const (
	exitOK      = 0 // and the result is right
	exitFailure = 1
	exitUsage   = 2
)

// Main runs an example and ends the process.
func Main(info Info, e Example) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(Run(ctx, info, e, os.Args[1:], os.Stdout, os.Stderr))
}

// Run is Main with everything that it touches as an argument, but for the
// environment.
func Run(ctx context.Context, info Info, e Example, args []string, stdout, stderr io.Writer) int {
	o, err := parse(info, e, args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err == nil:
		r := report{Example: info.Name}
		if err = r.run(ctx, info, e, o); err == nil {
			err = r.print(stdout, o.json)
		}
	}
	if err == nil {
		return exitOK
	}
	code := exitFailure
	if errors.As(err, new(*usageError)) {
		code = exitUsage
	}
	fmt.Fprintf(stderr, "%s: %v\n", info.Name, err)
	if o.json && !errors.Is(err, errWrong) {
		failure := struct {
			Error string `json:"error"`
			Exit  int    `json:"exit"`
		}{err.Error(), code}
		if err := json.NewEncoder(stdout).Encode(failure); err != nil {
			return exitFailure
		}
	}
	return code
}

// report is what is printed.
type report struct {
	Example string `json:"example"`
	// Rank is the rank that this process is; 0 if it is all of them.
	Rank  int `json:"rank"`
	Ranks int `json:"ranks"`
	// Where says how the ranks are run.
	Where string `json:"where"`
	// Profiles are those of the links of rank 0.
	Profiles []string `json:"profiles"`
	// Right is missing from ranks that have no result.
	Right  *bool  `json:"right,omitempty"`
	Result Result `json:"result,omitempty"`
}

// run runs the example.
func (r *report) run(ctx context.Context, info Info, e Example, o options) error {
	ctx, stop := context.WithTimeoutCause(ctx, o.timeout,
		fmt.Errorf("%s has not finished within %v, which is its -timeout", info.Name, o.timeout))
	defer stop()
	var err error
	if inEnvironment() {
		err = r.runOne(ctx, e)
	} else {
		err = r.runAll(ctx, e, o)
	}
	if err != nil && ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)) {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return err
}

// errWrong is the end of an example whose result is printed, and wrong.
var errWrong = errors.New("the result is wrong")

// print prints the report, and returns an error if the result is wrong.
func (r *report) print(w io.Writer, asJSON bool) error {
	wrong := ""
	if r.Result != nil {
		wrong = r.Result.Wrong()
		right := wrong == ""
		r.Right = &right
	}
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		if err := enc.Encode(r); err != nil {
			return err
		}
	} else if err := r.text(w); err != nil {
		return err
	}
	if wrong != "" {
		return fmt.Errorf("%w: %s", errWrong, wrong)
	}
	return nil
}
