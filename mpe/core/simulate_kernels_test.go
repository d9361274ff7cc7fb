package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/standin"
	"github.com/zrlmpi/zrlmpid/examples/apps/kmeans"
	"github.com/zrlmpi/zrlmpid/examples/apps/matvec"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/core"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// TestSimulationOfKernels checks that the results of stand-ins and a host are correct, and that the host
// sends nothing that would wedge an FPGA.
func TestSimulationOfKernels(t *testing.T) { eachSeed(t, 1, kernelKinds, simulateKernels) }

// hosts are the programs of rank 0, by kernel.
var hosts = map[string]struct {
	options func(rng *rand.Rand) config.KernelOptions
	run     func(ctx context.Context, rank simulatedRank, rng *rand.Rand, o config.KernelOptions) error
}{
	"echo": {
		func(rng *rand.Rand) config.KernelOptions { return config.KernelOptions{Words: 3000} },
		func(ctx context.Context, rank simulatedRank, rng *rand.Rand, _ config.KernelOptions) error {
			for range 20 {
				peer := 1 + rng.IntN(rank.Size()-1)
				if err := thereAndBack(ctx, rank, rng, peer, peer); err != nil {
					return err
				}
			}
			return nil
		},
	},
	"ring": {
		func(rng *rand.Rand) config.KernelOptions { return config.KernelOptions{Words: 3000} },
		func(ctx context.Context, rank simulatedRank, rng *rand.Rand, _ config.KernelOptions) error {
			for range 10 {
				if err := thereAndBack(ctx, rank, rng, 1, rank.Size()-1); err != nil {
					return err
				}
			}
			return nil
		},
	},
	"matvec": {
		func(*rand.Rand) config.KernelOptions { return config.KernelOptions{Words: 120} },
		func(ctx context.Context, rank simulatedRank, rng *rand.Rand, _ config.KernelOptions) error {
			world, err := mpi.New(rank)
			if err != nil {
				return err
			}
			numbers := func(n int) []float32 {
				list := make([]float32, n)
				for i := range list {
					list[i] = float32(rng.IntN(100))
				}
				return list
			}
			rows, columns := 1+rng.IntN(30), 1+rng.IntN(20)
			a, x, o := &matvec.Matrix[float32]{Rows: rows, Columns: columns, Numbers: numbers(rows * columns)},
				numbers(columns), matvec.Options{Rows: rng.IntN(3)}
			want, err := matvec.Serial(ctx, a, x, o)
			if err != nil {
				return err
			}
			got, err := matvec.Host(ctx, world, a, x, o)
			if err == nil && !slices.Equal(got, want) {
				err = errors.New("the product differs from the serial result")
			}
			return err
		},
	},
	"kmeans": {
		func(rng *rand.Rand) config.KernelOptions {
			return config.KernelOptions{Dimensions: 2, Iterations: 1 + rng.IntN(9), NormLimit: 1, Words: 200}
		},
		func(ctx context.Context, rank simulatedRank, rng *rand.Rand, o config.KernelOptions) error {
			world, err := mpi.New(rank)
			if err != nil {
				return err
			}
			vectors := make([]int32, 150)
			for i := range vectors {
				vectors[i] = rng.Int32N(1000)
			}
			options := kmeans.Options{Dimensions: o.Dimensions, Iterations: o.Iterations, NormLimit: o.NormLimit}
			want, err := kmeans.Serial(vectors, rank.Size(), options)
			if err != nil {
				return err
			}
			got, err := kmeans.Host(ctx, world, vectors, rank.Size(), options)
			if err == nil && !reflect.DeepEqual(got, want) {
				err = fmt.Errorf("%+v, not %+v", got, want)
			}
			return err
		},
	},
}

// thereAndBack sends a message to a rank, and receives it from another one.
func thereAndBack(ctx context.Context, rank simulatedRank, rng *rand.Rand, to, from int) error {
	b := make([]byte, 4*[]int{1, 2, 100, 347, 348, 3000}[rng.IntN(6)])
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	if _, err := rank.Send(ctx, to, b, mpe.Options{}); err != nil {
		return err
	}
	got := make([]byte, 12000)
	st, err := rank.Recv(ctx, from, got, mpe.Options{})
	if err == nil && !bytes.Equal(got[:st.Bytes], b) {
		err = fmt.Errorf("the data returned by rank %d differs", from)
	}
	return err
}

// simulateKernels runs the kernel of a seed.
func simulateKernels(t *testing.T, k *core.SimulatedKind, seed uint64) *core.Simulated {
	rng := rand.New(rand.NewPCG(seed, 2))
	s := core.NewSimulated(t, k, seed, 2+rng.IntN(3))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	name := []string{"echo", "ring", "matvec", "kmeans"}[rng.IntN(4)]
	host := hosts[name]
	options := host.options(rng)
	var programs []func()
	for rank, device := range devices(s) {
		d := device.(simulatedRank)
		if rank == 0 {
			programs = append(programs, func() {
				defer stop()
				if err := host.run(ctx, d, rng, options); err != nil {
					t.Errorf("the host: %v", err)
				}
			})
			continue
		}
		kernel, err := standin.New(name, options, standin.Env{})
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, func() {
			if err := kernel.Run(ctx, d); err != context.Canceled {
				t.Errorf("rank %d ended with %v", rank, err)
			}
			if n := kernel.Stats().Errors; n > 0 {
				t.Errorf("rank %d has had %d errors", rank, n)
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
		t.Logf("%d ranks, kernel %s, %+v", s.Size(), name, options)
	}
	return s
}
