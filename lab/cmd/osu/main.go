// Osu measures calls of package mpi in the way the OSU micro-benchmarks measure MPI in C, so that lib/speed.sh can
// compare both: with the same loops, the same warm-up, and the same mean.
//
//	zrlctl run -n 2 osu allreduce -m 4:1024 -i 20000
//
// The output has the same format: a line "length latency" for each length, or only the latency for a barrier, in µs.
// Osu is not an independent benchmark. zrlbench is one: it reports medians and verifies messages.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/job"
)

// largeMessage is the length in bytes above which OSU's programs use a shorter warm-up.
const largeMessage = 8192

// Numbers of warm-up iterations in OSU's programs: for messages up to largeMessage bytes, and for longer ones.
const (
	skip      = 100
	skipLarge = 10
)

// call is a collective call that moves length bytes from send to recv. Both buffers contain a block for each rank.
type call func(ctx context.Context, world *mpi.Comm, send, recv []byte, length int) error

// calls maps the names of OSU's programs to the collective calls that they measure.
var calls = map[string]call{
	"barrier": func(ctx context.Context, world *mpi.Comm, _, _ []byte, _ int) error {
		return mpi.Barrier(ctx, world)
	},
	"bcast": func(ctx context.Context, world *mpi.Comm, send, _ []byte, length int) error {
		return mpi.Bcast(ctx, world, send[:length], 0)
	},
	"reduce": func(ctx context.Context, world *mpi.Comm, send, recv []byte, length int) error {
		return mpi.Reduce(ctx, world, send[:length], recv[:length], mpi.Sum, 0)
	},
	"allreduce": func(ctx context.Context, world *mpi.Comm, send, recv []byte, length int) error {
		return mpi.Allreduce(ctx, world, send[:length], recv[:length], mpi.Sum)
	},
	"allgather": func(ctx context.Context, world *mpi.Comm, send, recv []byte, length int) error {
		return mpi.Allgather(ctx, world, send[:length], recv[:length*world.Size()])
	},
	"alltoall": func(ctx context.Context, world *mpi.Comm, send, recv []byte, length int) error {
		n := length * world.Size()
		return mpi.Alltoall(ctx, world, send[:n], recv[:n])
	},
}

// A commandLine is a parsed command line.
type commandLine struct {
	name string // of OSU's program, without osu_
	// shortest and longest are message lengths in bytes. Measurements begin with the shortest; each further length is
	// twice the previous one.
	shortest, longest int
	iterations        int
	warmUp            int // iterations, or 0 for the default of OSU's programs
}

const usage = "usage: osu latency|barrier|bcast|reduce|allreduce|allgather|alltoall [-m MIN:MAX] [-i ITERATIONS] " +
	"[-x WARMUP]"

func parse(args []string) (commandLine, error) {
	line := commandLine{shortest: 1, longest: 1 << 20}
	flags := flag.NewFlagSet("osu", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Func("m", "", func(s string) error {
		if _, err := fmt.Sscanf(s, "%d:%d", &line.shortest, &line.longest); err != nil {
			return err
		}
		if line.shortest < 1 || line.longest < line.shortest {
			return errors.New("want MIN:MAX, at least 1 byte")
		}
		return nil
	})
	flags.IntVar(&line.iterations, "i", 10000, "")
	flags.IntVar(&line.warmUp, "x", 0, "")
	if len(args) == 0 {
		return line, errors.New(usage)
	}
	line.name = args[0]
	if err := flags.Parse(args[1:]); err != nil {
		return line, fmt.Errorf("%w\n%s", err, usage)
	}
	if calls[line.name] == nil && line.name != "latency" || flags.NArg() > 0 || line.iterations < 1 || line.warmUp < 0 {
		return line, errors.New(usage)
	}
	return line, nil
}

func main() {
	o, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "osu:", err)
		os.Exit(2)
	}
	job.Main(2, func(ctx context.Context, world *mpi.Comm) error { return o.measure(ctx, world, os.Stdout) })
}

// measure runs the measurements that the order requests. Rank 0 prints the results.
func (o commandLine) measure(ctx context.Context, world *mpi.Comm, to io.Writer) error {
	c := calls[o.name]
	if o.name == "barrier" {
		µs, err := meanCallTime(ctx, world, c, 0, cmp.Or(o.warmUp, skip), o.iterations)
		if err == nil && world.Rank() == 0 {
			_, err = fmt.Fprintf(to, "%.2f\n", µs)
		}
		return err
	}
	for length := o.shortest; length <= o.longest; length *= 2 {
		warmUp := cmp.Or(o.warmUp, skip)
		if o.warmUp == 0 && length > largeMessage {
			warmUp = skipLarge
		}
		var µs float64
		var err error
		if c == nil {
			µs, err = pingPong(ctx, world, length, warmUp, o.iterations)
		} else {
			µs, err = meanCallTime(ctx, world, c, length, warmUp, o.iterations)
		}
		if err == nil && world.Rank() == 0 {
			_, err = fmt.Fprintf(to, "%-10d %.2f\n", length, µs)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// buffer returns memory that has been written to, as in OSU's programs. Memory that was never written to consists of a
// single zero page, mapped many times.
func buffer(length int) []byte { return bytes.Repeat([]byte{1}, length) }

// pingPong returns half the mean round-trip time between ranks 0 and 1 in µs, like osu_latency.
func pingPong(ctx context.Context, world *mpi.Comm, length, warmUp, iterations int) (float64, error) {
	send, recv := buffer(length), buffer(length)
	if err := mpi.Barrier(ctx, world); err != nil {
		return 0, err
	}
	if world.Rank() > 1 {
		return 0, nil
	}
	peer := 1 - world.Rank()
	var start time.Time
	for i := range warmUp + iterations {
		if i == warmUp {
			start = time.Now()
		}
		if world.Rank() == 0 {
			if err := mpi.Send(ctx, world, send, peer, 1); err != nil {
				return 0, err
			}
		}
		if _, err := mpi.Recv(ctx, world, recv, peer, 1); err != nil {
			return 0, err
		}
		if world.Rank() == 1 {
			if err := mpi.Send(ctx, world, send, peer, 1); err != nil {
				return 0, err
			}
		}
	}
	return time.Since(start).Seconds() * 1e6 / float64(2*iterations), nil
}

// meanCallTime returns the mean time of a call over all ranks in µs, like OSU's collective programs. A call with a
// length is followed by a barrier that is not timed.
func meanCallTime(ctx context.Context, world *mpi.Comm, collective call, length, warmUp, iterations int) (float64,
	error) {
	send, recv := buffer(length*world.Size()), buffer(length*world.Size())
	if err := mpi.Barrier(ctx, world); err != nil {
		return 0, err
	}
	var total time.Duration
	for i := range warmUp + iterations {
		start := time.Now()
		if err := collective(ctx, world, send, recv, length); err != nil {
			return 0, err
		}
		took := time.Since(start)
		if length > 0 {
			if err := mpi.Barrier(ctx, world); err != nil {
				return 0, err
			}
		}
		if i >= warmUp {
			total += took
		}
	}
	mean := []float64{total.Seconds() * 1e6 / float64(iterations)}
	sum := []float64{0}
	err := mpi.Reduce(ctx, world, mean, sum, mpi.Sum, 0)
	return sum[0] / float64(world.Size()), err
}
