package core_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe/core"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// TestSimulationOfUpstreamCalls checks that collective calls of a host with FPGAs have correct results, and
// that nothing is sent that would wedge an FPGA.
func TestSimulationOfUpstreamCalls(t *testing.T) { eachSeed(t, 1, fpgaKinds, simulateUpstreamCalls) }

func simulateUpstreamCalls(t *testing.T, k *core.SimulatedKind, seed uint64) *core.Simulated {
	rng := rand.New(rand.NewPCG(seed, 5))
	s := core.NewSimulated(t, k, seed, 2+rng.IntN(6))
	var calls []upstreamCall
	for range 1 + rng.IntN(8) {
		n := []int{1, 2, 100, 347, 1000}[rng.IntN(5)]
		calls = append(calls, []upstreamCall{bcast(n), scatter(n), gather(n), reduce(n)}[rng.IntN(4)])
	}
	var programs []func()
	for rank, device := range devices(s) {
		world, err := mpi.New(device)
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, func() {
			for i, call := range calls {
				if err := call(t.Context(), world, int32(i)); err != nil {
					t.Errorf("rank %d, call %d: %v", rank, i, err)
					return
				}
			}
		})
	}
	if err := s.Run(programs...); err != nil {
		t.Error(err)
	}
	if n := s.Wedges(); n > 0 {
		t.Errorf("%d packets would have wedged an FPGA", n)
	}
	if t.Failed() {
		t.Logf("%d ranks, %d calls", s.Size(), len(calls))
	}
	return s
}

// upstreamCall makes a call that upstream's compiler knows, with rank 0 as its root, and checks the result.
// salt makes its words differ from the words of other calls.
type upstreamCall func(ctx context.Context, world *mpi.Comm, salt int32) error

// block returns the contribution of a rank: n words.
func block(n, rank int, salt int32) []int32 {
	words := make([]int32, n)
	for i := range words {
		words[i] = int32(1000*rank+i) * (salt + 1)
	}
	return words
}

// blocks returns the contributions of all ranks.
func blocks(n, ranks int, salt int32) (all []int32) {
	for rank := range ranks {
		all = append(all, block(n, rank, salt)...)
	}
	return all
}

func sameWords(call string, got, want []int32, err error) error {
	if err == nil && !slices.Equal(got, want) {
		err = fmt.Errorf("%s of %d words has a wrong result", call, len(want))
	}
	return err
}

func bcast(n int) upstreamCall {
	return func(ctx context.Context, world *mpi.Comm, salt int32) error {
		words, want := make([]int32, n), block(n, 0, salt)
		if world.Rank() == 0 {
			copy(words, want)
		}
		return sameWords("Bcast", words, want, mpi.Bcast(ctx, world, words, 0))
	}
}

func scatter(n int) upstreamCall {
	return func(ctx context.Context, world *mpi.Comm, salt int32) error {
		var all []int32
		if world.Rank() == 0 {
			all = blocks(n, world.Size(), salt)
		}
		mine := make([]int32, n)
		err := mpi.Scatter(ctx, world, all, mine, 0)
		return sameWords("Scatter", mine, block(n, world.Rank(), salt), err)
	}
}

func gather(n int) upstreamCall {
	return func(ctx context.Context, world *mpi.Comm, salt int32) error {
		var all, want []int32
		if world.Rank() == 0 {
			want = blocks(n, world.Size(), salt)
			all = make([]int32, len(want))
		}
		return sameWords("Gather", all, want, mpi.Gather(ctx, world, block(n, world.Rank(), salt), all, 0))
	}
}

func reduce(n int) upstreamCall {
	return func(ctx context.Context, world *mpi.Comm, salt int32) error {
		var sum, want []int32
		if world.Rank() == 0 {
			sum, want = make([]int32, n), make([]int32, n)
			for rank := range world.Size() {
				for i, v := range block(n, rank, salt) {
					want[i] += v
				}
			}
		}
		return sameWords("Reduce", sum, want, mpi.Reduce(ctx, world, block(n, world.Rank(), salt), sum, mpi.Sum, 0))
	}
}
