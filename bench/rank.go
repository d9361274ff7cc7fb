package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"time"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/node"
)

// rankCommand makes this program one of zrlmpid's two ranks.
const rankCommand = "rank"

// closeTime is how long a rank waits for its last messages to be acknowledged.
const closeTime = 5 * time.Second

// runRank is a rank: the steps of a workload, in a process of its own.
func runRank(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	f := flag.NewFlagSet(rankCommand, flag.ContinueOnError)
	f.SetOutput(stderr)
	config := f.String("config", "", "configuration `file`")
	rank := f.Int("rank", 0, "which of its ranks")
	name := f.String("workload", "", "what to do")
	profile := f.String("cpuprofile", "", "write a CPU profile to this `file`")
	if f.Parse(args) != nil {
		return errUsage
	}
	w := workloads[*name]
	if w == nil {
		return fmt.Errorf("there is no workload %q", *name)
	}
	var steps []step
	for _, text := range f.Args() {
		s, err := parseStep(text)
		if err != nil {
			return err
		}
		steps = append(steps, s)
	}
	if *profile != "" {
		stop, err := startProfile(*profile)
		if err != nil {
			return err
		}
		defer stop()
	}
	dev, err := node.OpenFile(*config, *rank)
	if err != nil {
		return err
	}
	world, err := mpi.New(dev)
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		if closed := world.Finalize(end); err == nil {
			err = closed
		}
	}()
	if err := w.run(ctx, world, steps, stdout); err != nil {
		return fmt.Errorf("rank %d: %w", *rank, err)
	}
	return nil
}

// startProfile profiles until the returned function is called.
func startProfile(path string) (stop func(), err error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		f.Close()
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		f.Close()
	}, nil
}
