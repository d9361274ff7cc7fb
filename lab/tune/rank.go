package tune

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/node"
)

// RankCommand is the first argument with which a program starts itself as a rank. It is for internal use.
const RankCommand = "tune-rank"

// closeTime limits how long a rank waits for its last messages to be acknowledged.
const closeTime = 5 * time.Second

// RunRank runs a rank that reads jobs from stdin and writes answers to stdout. args are the arguments after
// RankCommand. It returns when ctx is done, or when stdin is closed, as happens when the parent process exits.
func RunRank(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	set := flag.NewFlagSet(RankCommand, flag.ContinueOnError)
	set.SetOutput(io.Discard) // the returned error contains it
	file := set.String("config", "", "configuration `file`")
	rank := set.Int("rank", 0, "which of its ranks")
	if err := set.Parse(args); err != nil {
		return err
	}
	dev, err := node.OpenFile(*file, *rank)
	if err != nil {
		return err
	}
	world, err := mpi.New(dev)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	jobs := make(chan job)
	go func() {
		defer cancel()
		for in := json.NewDecoder(stdin); ; {
			var j job
			if in.Decode(&j) != nil {
				return // the parent process has exited
			}
			select {
			case jobs <- j:
			case <-ctx.Done():
				return
			}
		}
	}()
	err = serveJobs(ctx, &worker{comm: world}, jobs, stdout)
	end, stop := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer stop()
	return errors.Join(err, world.Finalize(end))
}

// serveJobs answers jobs until ctx is done or a job fails.
func serveJobs(ctx context.Context, w *worker, jobs <-chan job, stdout io.Writer) error {
	out := json.NewEncoder(stdout)
	for {
		select {
		case <-ctx.Done():
			return nil
		case j := <-jobs:
			nanos, err := w.runJob(ctx, j)
			switch {
			case err == nil:
				err = out.Encode(answer{Nanos: nanos})
			case errors.Is(err, context.Canceled):
				return nil // the parent process has exited
			default:
				err = errors.Join(fmt.Errorf("%s: %w", j.Collective, err), out.Encode(answer{Error: err.Error()}))
			}
			if err != nil {
				return err
			}
		}
	}
}
