package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// warmup is how many messages go each way before the ones that are timed, as in
// c/bench.h.
const warmup = 20

// step is one setting of a workload: a depth or a size, and how many messages to
// time there. Its text is N:ITERATIONS.
type step struct{ n, iterations int }

func (s step) String() string { return fmt.Sprintf("%d:%d", s.n, s.iterations) }

func parseStep(text string) (step, error) {
	var s step
	if _, err := fmt.Sscanf(text, "%d:%d", &s.n, &s.iterations); err != nil || s.n < 0 || s.iterations < 1 || s.String() != text {
		return step{}, fmt.Errorf("%q: a step is N:ITERATIONS, such as 100:1000", text)
	}
	return s, nil
}

// workload is what two ranks do, in C and in Go.
type workload struct {
	name, title string
	// unit is what a step's n counts.
	unit string
	// full and quick are the steps; quick is for tests.
	full, quick []step
	// messages is how many a step has, all of which are verified.
	messages func(step) int
	// run is what rank 0 and rank 1 of c do. Rank 0 writes what parseOutput reads.
	run func(ctx context.Context, c *mpi.Comm, steps []step, out io.Writer) error
	// links are the ways in which zrlmpid takes part, and base the side that
	// the others are compared with, or "".
	links []link
	base  string
}

var workloads = map[string]*workload{
	"queues": {
		name: "queues", title: "Posted receives", unit: "receives posted",
		full: []step{
			{0, 1000}, {1, 1000}, {10, 1000}, {100, 1000}, {256, 1000},
			{1000, 1000}, {4000, 1000}, {10000, 300}, {30000, 300},
		},
		quick:    []step{{0, 20}, {10, 20}, {300, 20}},
		messages: func(s step) int { return 2*(warmup+s.iterations) + s.n },
		run:      runQueues,
		links:    []link{extendedUDP},
	},
	"pingpong": {
		name: "pingpong", title: "Ping-pong", unit: "bytes",
		full: []step{
			{4, 2000}, {16, 2000}, {64, 2000}, {256, 2000}, {1024, 2000},
			{1344, 2000}, {1348, 2000}, // one datagram of the extended profile, and two
			{4096, 2000}, {16384, 1000}, {16388, 1000}, // eager, and not
			{65536, 500}, {262144, 300}, {1 << 20, 100}, {4 << 20, 50},
		},
		quick:    []step{{4, 20}, {1348, 20}, {65536, 2}},
		messages: func(s step) int { return 2 * (warmup + s.iterations) },
		run:      runPingPong,
		links:    []link{extendedUDP, extendedTCP, cloudFPGA},
		base:     openMPITCP,
	},
}

// total is how many messages all steps have.
func (w *workload) total(steps []step) int {
	n := 0
	for _, s := range steps {
		n += w.messages(s)
	}
	return n
}

// texts are the steps as arguments of a program.
func texts(steps []step) []string {
	args := make([]string, len(steps))
	for i, s := range steps {
		args[i] = s.String()
	}
	return args
}

// parseSteps reads the steps of the -steps flag.
func parseSteps(list string) ([]step, error) {
	var steps []step
	for text := range strings.SplitSeq(list, ",") {
		s, err := parseStep(text)
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return steps, nil
}
