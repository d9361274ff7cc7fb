package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/job"
)

// TestOutput checks that each call prints its results in the format that lib/speed.sh reads: a line for each length, or
// a single number.
func TestOutput(t *testing.T) {
	for _, name := range []string{"latency", "barrier", "bcast", "reduce", "allreduce", "allgather", "alltoall"} {
		o, err := parse([]string{name, "-m", "4:16384", "-i", "3", "-x", "1"})
		if err != nil {
			t.Fatal(err)
		}
		for _, ranks := range []int{2, 4} {
			var out strings.Builder
			if err := job.Run(context.Background(), ranks,
				func(ctx context.Context, world *mpi.Comm) error { return o.measure(ctx, world, &out) }); err != nil {
				t.Fatalf("%s, %d ranks: %v", name, ranks, err)
			}
			lengths := []int{4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
			if name == "barrier" {
				lengths = lengths[:1]
			}
			for line := range strings.Lines(out.String()) {
				var length int
				var µs float64
				if name == "barrier" {
					line = "4 " + line
				}
				if _, err := fmt.Sscanf(line, "%d %f", &length, &µs); err != nil || len(lengths) == 0 ||
					length != lengths[0] || µs < 0 {
					t.Fatalf("%s, %d ranks: %q, want a latency of %v", name, ranks, line, lengths)
				}
				lengths = lengths[1:]
			}
			if len(lengths) > 0 {
				t.Errorf("%s, %d ranks: nothing of %v", name, ranks, lengths)
			}
		}
	}
}

func TestCommandLine(t *testing.T) {
	for _, args := range [][]string{{}, {"-i", "3"}, {"pong"}, {"latency", "-i", "0"}, {"latency", "-m", "0:4"},
		{"latency", "-m", "8:4"}, {"latency", "-m", "8"}, {"latency", "8"}, {"latency", "-x"},
		{"latency", "-x", "-1"}} {
		if o, err := parse(args); err == nil || !strings.Contains(err.Error(), "usage") {
			t.Errorf("%v: %+v, %v", args, o, err)
		}
	}
	if o, err := parse([]string{"bcast"}); err != nil || o != (commandLine{"bcast", 1, 1 << 20, 10000, 0}) {
		t.Errorf("%+v, %v", o, err)
	}
}
