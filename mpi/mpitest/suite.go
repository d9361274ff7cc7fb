package mpitest

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// WorldFunc returns the devices of a cluster of n ranks, in rank order. At the end of the test, it closes the
// devices that are still open.
type WorldFunc func(t *testing.T, n int) []mpe.Device

// testTimeout is the maximum duration of a test, in case a device hangs.
const testTimeout = 60 * time.Second

// Conformance tests package mpi on devices whose wires have no limits.
func Conformance(t *testing.T, world WorldFunc) {
	runTests(t, world, messageTests)
	runTests(t, world, []test{{"creates at a time", 4, concurrentCreates}, {"late cancels", 1, lateCancels},
		{"threads", 2, threads}})
	Collectives(t, world)
	t.Run("finalize", func(t *testing.T) { finalize(t, world) })
}

// Collectives is the part of Conformance that tests collective calls.
func Collectives(t *testing.T, world WorldFunc) {
	runTests(t, world, collectiveTests)
	runTests(t, world, []test{{"collectives of goroutines", 2, sharedWaits}})
}

// RunOne runs one test, selected by i. The test is from Conformance, or from Limits if the wires to rank 0 are limited.
// Each rank makes its calls from one goroutine. RunOne returns the name of the test.
func RunOne(t *testing.T, world WorldFunc, i uint64, wire mpe.PeerInfo) string {
	all := limits(wire)
	if len(all) == 0 {
		all = slices.Concat(messageTests, collectiveTests)
	}
	c := all[i%uint64(len(all))]
	runOnAll(t, world, c.ranks, c.run)
	return c.name
}

// These tests belong to Conformance. In each of them, every rank makes its calls from a single goroutine.
var (
	messageTests = []test{
		{"modes", 2, modes},
		{"types", 2, types},
		{"synchronous", 2, synchronous},
		{"buffered", 2, buffered},
		{"sendrecv", 4, sendrecv},
		{"order", 2, order},
		{"tags", 2, tags},
		{"wildcards", 4, wildcards},
		{"posted order", 2, postedOrder},
		{"probe", 3, probe},
		{"self", 2, self},
		{"null process", 1, procNull},
		{"truncation", 2, truncation},
		{"deadline", 2, deadline},
		{"cancel", 2, cancel},
		{"a context's cause", 2, cause},
		{"persistent", 2, persistent},
		{"wait for any", 2, waitany},
		{"wait for some", 2, waitsome},
		{"wait for all", 2, waitall},
		{"wait's deadline", 2, waitDeadline},
		{"inactive requests", 1, inactive},
		{"stale handles", 2, staleHandles},
		{"freed requests", 2, freedRequests},
		{"waits of many", 2, waitsOfMany},
		{"arguments", 2, arguments},
		{"dup", 3, dup},
		{"dup's deadline", 3, dupDeadline},
		{"split", 6, split},
		{"create", 4, create},
		{"free", 2, free},
	}
	collectiveTests = []test{
		{"collectives of one", 1, movement},
		{"collectives of two", 2, movement},
		{"collectives of five", 5, movement},
		{"reductions of one", 1, reductions},
		{"reductions of two", 2, reductions},
		{"reductions of five", 5, someReductions},
		{"blocks of different lengths", 5, vectors},
		{"blocks of different lengths of one", 1, vectors},
		{"functions", 6, userOperators},
		{"algorithms", 5, algorithms},
		{"collectives at a time", 4, overlapping},
		{"collectives while others are waited for", 2, backgroundProgress},
		{"mistakes", 2, invalidCollectives},
		{"collectives' deadline", 3, collectiveDeadline},
		{"collectives' requests", 2, collectiveRequests},
	}
)

// test is a test to be run on a cluster with a certain number of ranks.
type test struct {
	name  string
	ranks int
	run   func(r *rank)
}

func runTests(t *testing.T, world WorldFunc, tests []test) {
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) { runOnAll(t, world, c.ranks, c.run) })
	}
}

// runner is a device that itself runs the programs of all ranks, as a device does that simulates time. Run returns when
// all programs have returned. Each program makes its calls from one goroutine. Contexts from WithTimeout use the
// programs' clock.
type runner interface {
	Run(programs ...func()) error
	WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
}

// rank provides one rank's access to the test that it takes part in.
type rank struct {
	*mpi.Comm
	ctx  context.Context
	t    *testing.T
	stop context.CancelCauseFunc
	// withTimeout is like context.WithTimeout, but measures time on the devices' clock.
	withTimeout func(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
}

var errStopped = errors.New("another rank has failed")

// runOnAll runs a test on all ranks of a world concurrently.
func runOnAll(t *testing.T, world WorldFunc, n int, run func(r *rank)) {
	t.Helper()
	timeout, release := context.WithTimeout(t.Context(), testTimeout)
	defer release()
	ctx, stop := context.WithCancelCause(timeout)
	defer stop(nil)
	var comms []*mpi.Comm
	devices := world(t, n)
	for _, dev := range devices {
		c, err := mpi.New(dev)
		if err != nil {
			t.Fatal(err)
		}
		comms = append(comms, c)
	}
	var programs []func()
	d, simulated := devices[0].(runner)
	withTimeout := context.WithTimeout
	if simulated {
		withTimeout = d.WithTimeout
	}
	for _, c := range comms {
		programs = append(programs, func() { run(&rank{c, ctx, t, stop, withTimeout}) })
	}
	if simulated {
		if err := d.Run(programs...); err != nil {
			t.Error(err)
		}
	} else {
		var wg sync.WaitGroup
		for _, program := range programs {
			wg.Go(program)
		}
		wg.Wait()
	}
	if t.Failed() {
		return
	}
	for _, c := range comms {
		if err := c.Finalize(ctx); err != nil {
			t.Errorf("rank %d: %v", c.Rank(), err)
		}
	}
}

// fatalf ends the test on this rank with an error, which soon ends it on the other ranks too.
func (r *rank) fatalf(format string, args ...any) {
	r.t.Helper()
	if !errors.Is(context.Cause(r.ctx), errStopped) {
		r.t.Errorf("rank %d: "+format, append([]any{r.Rank()}, args...)...)
	}
	r.stop(errStopped)
	runtime.Goexit()
}

func (r *rank) must(err error) {
	r.t.Helper()
	if err != nil {
		r.fatalf("%v", err)
	}
}

// checkClass checks the class of an error.
func (r *rank) checkClass(err error, want mpi.Class) {
	r.t.Helper()
	if !errors.Is(err, want) {
		r.fatalf("%v is of class %v, not %v", err, mpi.ClassOf(err), want)
	}
}

func checkEqual[T comparable](r *rank, what string, got, want T) {
	r.t.Helper()
	if got != want {
		r.fatalf("%s is %v, not %v", what, got, want)
	}
}

// must returns a function that returns the value v, or fails the test if err is not nil.
func must[T any](v T, err error) func(r *rank) T {
	return func(r *rank) T {
		r.t.Helper()
		r.must(err)
		return v
	}
}

// tagSync is the tag used by notify and await, which synchronize two ranks. No test uses it.
const tagSync = 1 << 20

func (r *rank) notify(to int, v int32) {
	r.t.Helper()
	r.must(mpi.Send(r.ctx, r.Comm, []int32{v}, to, tagSync))
}

func (r *rank) await(from int) int32 {
	r.t.Helper()
	var v [1]int32
	_, err := mpi.Recv(r.ctx, r.Comm, v[:], from, tagSync)
	r.must(err)
	return v[0]
}

// syncWith waits until another rank also calls syncWith.
func (r *rank) syncWith(other int) {
	r.t.Helper()
	_, err := mpi.Sendrecv(r.ctx, r.Comm, []int32{0}, other, tagSync, []int32{0}, other, tagSync)
	r.must(err)
}

// pattern fills a message with numbers that differ between positions and messages.
func pattern(n int, seed int) []int32 {
	b := make([]int32, n)
	for i := range b {
		b[i] = int32(seed*1_000_003 + i)
	}
	return b
}

func (r *rank) checkPattern(b []int32, n, seed int) {
	r.t.Helper()
	for i, want := range pattern(n, seed) {
		if b[i] != want {
			r.fatalf("number %d of message %d is %d, not %d", i, seed, b[i], want)
		}
	}
}
