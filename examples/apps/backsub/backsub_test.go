package backsub_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zrlmpi/zrlmpid/examples/apps/appstest"
	"github.com/zrlmpi/zrlmpid/examples/apps/backsub"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// random returns random equations whose unknowns are neither very large nor very small.
func random[T backsub.Number](n int) (*backsub.Matrix[T], []T) {
	r := rand.New(rand.NewPCG(uint64(n), 3))
	a, b := &backsub.Matrix[T]{Size: n, Numbers: make([]T, n*n)}, make([]T, n)
	for i := range n {
		for j := range n {
			a.Numbers[i*n+j] = T((2*r.Float64() - 1) / float64(n))
		}
		a.Numbers[i*n+i] = T(1 + r.Float64())
		b[i] = T(2*r.Float64() - 1)
	}
	return a, b
}

func TestSerial(t *testing.T) {
	for _, c := range []struct {
		name             string
		size             int
		numbers, b, want []float32
	}{
		{"one equation", 1, []float32{4}, []float32{-2}, []float32{-0.5}},
		// The numbers below the diagonal are ignored.
		{"by hand", 3, []float32{2, 3, 1, 99, 4, -2, 99, 99, 5}, []float32{11, 6, 5}, []float32{2, 2, 1}},
		// float32 has 24 bits: 2²⁴ + 1 is rounded to 2²⁴. The last unknown is substituted first.
		{"from the last one on", 3, []float32{1, -1, 1 << 24, 0, 1, 0, 0, 0, 1}, []float32{1 << 24, 1, 1},
			[]float32{1, 1, 1}},
		{"in this order", 3, []float32{1, 1 << 24, -1, 0, 1, 0, 0, 0, 1}, []float32{1 << 24, 1, 1}, []float32{0, 1, 1}},
		// 4097² is 2²⁴ + 2¹³ + 1, which is rounded down by one.
		{"products are rounded", 2, []float32{1, 4097, 0, 1}, []float32{1<<24 + 1<<13, 4097}, []float32{0, 4097}},
	} {
		x, err := backsub.Serial(t.Context(), &backsub.Matrix[float32]{Size: c.size, Numbers: c.numbers}, c.b,
			backsub.Options{})
		if err != nil || !slices.Equal(x, c.want) {
			t.Errorf("%s: %v, %v; want %v", c.name, x, err, c.want)
		}
	}
}

// TestSolves checks that the unknowns solve the equations.
func TestSolves(t *testing.T) {
	a, b := random[float64](300)
	x, err := backsub.Serial(t.Context(), a, b, backsub.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		sum := 0.0
		for j := i; j < a.Size; j++ {
			sum += a.Numbers[i*a.Size+j] * x[j]
		}
		if math.Abs(sum-b[i]) > 1e-12 {
			t.Errorf("equation %d: %v instead of %v", i, sum, b[i])
		}
	}
}

// parallel solves equations with all ranks, and compares the result with Serial bit by bit. If flat returns true, a
// worker uses only Send and Recv.
func parallel[T backsub.Number](t *testing.T, all []*mpi.Comm, size int, flat func(rank int) bool) {
	t.Helper()
	ctx := appstest.TestContext(t)
	a, b := random[T](size)
	want, err := backsub.Serial(t.Context(), a, b, backsub.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got *backsub.Result[T]
	var ranks errgroup.Group
	for _, world := range all {
		ranks.Go(func() (err error) {
			if world.Rank() == backsub.Root {
				got, err = backsub.Host(ctx, world, a, b, backsub.Options{})
				return err
			}
			return backsub.Work[T](ctx, world, backsub.Options{Words: 2 * size * size, Unrolled: flat(world.Rank())})
		})
	}
	if err := ranks.Wait(); err != nil {
		t.Fatalf("%d unknowns: %v", size, err)
	}
	if !slices.Equal(got.X, want) || got.DealTime <= 0 || got.SolveTime <= 0 {
		t.Errorf("%d unknowns: differs from the serial result, or took no time: %v %v", size, got.DealTime, got.SolveTime)
	}
}

func TestParallel(t *testing.T) {
	for _, profile := range []protocol.Profile{protocol.CloudFPGA, protocol.Extended} {
		for ranks := 1; ranks <= 17; ranks++ {
			t.Run(fmt.Sprintf("%v %d ranks", profile, ranks), func(t *testing.T) {
				all := appstest.Worlds(t, ranks, profile)
				for _, size := range []int{1, 2, 16, 17, 41} {
					parallel[float32](t, all, size, func(int) bool { return false })
					parallel[float64](t, all, size, func(int) bool { return false })
				}
				if profile == protocol.Extended {
					return // these ranks distinguish collective calls from Send and Recv
				}
				parallel[float32](t, all, 17, func(int) bool { return true })
				parallel[float64](t, all, 17, func(rank int) bool { return rank%2 == 1 })
			})
		}
	}
}

func TestOptions(t *testing.T) {
	ctx, all := appstest.TestContext(t), appstest.Worlds(t, 3, protocol.CloudFPGA)
	for name, c := range map[string]struct {
		size       int
		numbers, b []float32
		o          backsub.Options
	}{
		"no rows":            {0, nil, nil, backsub.Options{}},
		"negative":           {-1, []float32{1}, []float32{1}, backsub.Options{}},
		"many rows":          {backsub.MaxSize + 1, nil, nil, backsub.Options{}},
		"half a matrix":      {2, []float32{1, 2}, []float32{1, 2}, backsub.Options{}},
		"one side":           {2, []float32{1, 2, 3, 4}, []float32{1}, backsub.Options{}},
		"0 on the diagonal":  {2, []float32{1, 2, 0, 0}, []float32{1, 2}, backsub.Options{}},
		"negative pace":      {1, []float32{1}, []float32{1}, backsub.Options{Pace: -1}},
		"a slow pace":        {1, []float32{1}, []float32{1}, backsub.Options{Pace: time.Millisecond + 1}},
		"-0 on the diagonal": {1, []float32{float32(math.Copysign(0, -1))}, []float32{1}, backsub.Options{}},
	} {
		a := &backsub.Matrix[float32]{Size: c.size, Numbers: c.numbers}
		if _, err := backsub.Host(ctx, all[0], a, c.b, c.o); !errors.Is(err, backsub.ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := backsub.Serial(ctx, a, c.b, c.o); !errors.Is(err, backsub.ErrOptions) {
			t.Errorf("%s, serial: %v", name, err)
		}
	}
	for _, o := range []backsub.Options{{}, {Words: -1}} {
		if err := backsub.Work[float32](ctx, all[1], o); !errors.Is(err, backsub.ErrOptions) {
			t.Errorf("worker with %+v: %v", o, err)
		}
	}
	if err := backsub.Work[float32](ctx, all[0], backsub.Options{Words: 1}); !errors.Is(err, backsub.ErrOptions) {
		t.Errorf("the host as a worker: %v", err)
	}
}

// TestEnds checks that all ranks return when the context ends, with an error about the wait.
func TestEnds(t *testing.T) {
	all := appstest.Worlds(t, 3, protocol.CloudFPGA)
	cause := errors.New("enough")
	ctx, stop := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, cause)
	defer stop()
	a, b := random[float32](4)
	_, hostErr := backsub.Host(ctx, all[0], a, b, backsub.Options{})
	for name, err := range map[string]error{
		"host":            hostErr,
		"worker":          backsub.Work[float32](ctx, all[1], backsub.Options{Words: 4}),
		"unrolled worker": backsub.Work[float32](ctx, all[2], backsub.Options{Words: 4, Unrolled: true}),
	} {
		if !errors.Is(err, cause) || !strings.Contains(err.Error(), "has waited") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
