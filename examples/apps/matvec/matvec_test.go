package matvec_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zrlmpi/zrlmpid/examples/apps/appstest"
	"github.com/zrlmpi/zrlmpid/examples/apps/matvec"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// random returns a matrix and a vector of numbers whose products need rounding.
func random[T matvec.Number](rows, columns int) (*matvec.Matrix[T], []T) {
	r := rand.New(rand.NewPCG(uint64(rows), uint64(columns)))
	a, x := &matvec.Matrix[T]{Rows: rows, Columns: columns, Numbers: make([]T, rows*columns)}, make([]T, columns)
	for i := range a.Numbers {
		a.Numbers[i] = T(2*r.Float64() - 1)
	}
	for i := range x {
		x[i] = T(2*r.Float64() - 1)
	}
	return a, x
}

func TestSerial(t *testing.T) {
	for _, c := range []struct {
		name          string
		rows, columns int
		numbers, x, y []float32
	}{
		{"one number", 1, 1, []float32{3}, []float32{-2}, []float32{-6}},
		{"rows", 2, 3, []float32{1, 2, 3, 40, 50, 60}, []float32{1, 10, 100}, []float32{321, 6540}},
		{"a column", 3, 1, []float32{1, 2, 3}, []float32{4}, []float32{4, 8, 12}},
		// float32 has 24 bits: 2²⁴ + 1 is rounded to 2²⁴.
		{"from left to right", 2, 3, []float32{1 << 24, 1, -1 << 24, 1 << 24, -1 << 24, 1}, []float32{1, 1, 1},
			[]float32{0, 1}},
		// 4097² is 2²⁴ + 2¹³ + 1, which is rounded down by one.
		{"products are rounded", 1, 2, []float32{-1<<24 - 1<<13, 4097}, []float32{1, 4097}, []float32{0}},
	} {
		y, err := matvec.Serial(t.Context(),
			&matvec.Matrix[float32]{Rows: c.rows, Columns: c.columns, Numbers: c.numbers}, c.x, matvec.Options{})
		if err != nil || !slices.Equal(y, c.y) {
			t.Errorf("%s: %v, %v; want %v", c.name, y, err, c.y)
		}
	}
}

// parallel computes a product with all ranks, and compares the result with Serial bit by bit. If flat returns true, a
// worker uses only Send and Recv.
func parallel[T matvec.Number](t *testing.T, all []*mpi.Comm, rows, columns, each int, flat func(rank int) bool) {
	t.Helper()
	ctx := appstest.TestContext(t)
	a, x := random[T](rows, columns)
	want, err := matvec.Serial(ctx, a, x, matvec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []T
	var ranks errgroup.Group
	for _, world := range all {
		ranks.Go(func() (err error) {
			if world.Rank() == matvec.Root {
				got, err = matvec.Host(ctx, world, a, x, matvec.Options{Rows: each})
				return err
			}
			return matvec.Work[T](ctx, world, matvec.Options{Words: 2 * rows * columns, Unrolled: flat(world.Rank())})
		})
	}
	if err := ranks.Wait(); err != nil {
		t.Fatalf("%d x %d, %d rows at a time: %v", rows, columns, each, err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d x %d, %d rows at a time: differs from the serial result", rows, columns, each)
	}
}

func TestParallel(t *testing.T) {
	for _, profile := range []protocol.Profile{protocol.CloudFPGA, protocol.Extended} {
		for ranks := 1; ranks <= 17; ranks++ {
			t.Run(fmt.Sprintf("%v %d ranks", profile, ranks), func(t *testing.T) {
				all := appstest.Worlds(t, ranks, profile)
				for name, flat := range map[string]func(int) bool{
					"collectives": func(int) bool { return false },
					"flat":        func(int) bool { return true },
					"mixed":       func(rank int) bool { return rank%2 == 1 },
				} {
					if profile == protocol.Extended && name != "collectives" {
						continue // these ranks distinguish collective calls from Send and Recv
					}
					for _, c := range []struct{ rows, columns, each int }{
						{1, 1, 0},   // fewer rows than ranks
						{16, 16, 1}, // one or two rows for each rank
						{23, 7, 1},  // nothing divides evenly
						{50, 50, 3},
						{5, 400, 5},  // all rows at once, in two datagrams
						{34, 3, 999}, // more than there are
					} {
						parallel[float32](t, all, c.rows, c.columns, c.each, flat)
						parallel[float64](t, all, c.rows, c.columns, c.each, flat)
					}
				}
			})
		}
	}
}

func TestOptions(t *testing.T) {
	ctx, all := appstest.TestContext(t), appstest.Worlds(t, 3, protocol.CloudFPGA)
	for name, c := range map[string]struct {
		rows, columns, numbers, x int
		o                         matvec.Options
	}{
		"no rows":         {0, 1, 0, 1, matvec.Options{}},
		"no columns":      {1, 0, 0, 0, matvec.Options{}},
		"many rows":       {matvec.MaxSize + 1, 1, matvec.MaxSize + 1, 1, matvec.Options{}},
		"many columns":    {1, matvec.MaxSize + 1, matvec.MaxSize + 1, matvec.MaxSize + 1, matvec.Options{}},
		"half a matrix":   {2, 2, 2, 2, matvec.Options{}},
		"half a vector":   {2, 2, 4, 1, matvec.Options{}},
		"rows at a time":  {2, 2, 4, 2, matvec.Options{Rows: -1}},
		"negative pace":   {2, 2, 4, 2, matvec.Options{Pace: -1}},
		"a slow pace":     {2, 2, 4, 2, matvec.Options{Pace: time.Millisecond + 1}},
		"negative matrix": {-1, -1, 1, 1, matvec.Options{}},
	} {
		a := &matvec.Matrix[float32]{Rows: c.rows, Columns: c.columns, Numbers: make([]float32, c.numbers)}
		if _, err := matvec.Host(ctx, all[0], a, make([]float32, c.x), c.o); !errors.Is(err, matvec.ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := matvec.Serial(ctx, a, make([]float32, c.x), c.o); !errors.Is(err, matvec.ErrOptions) {
			t.Errorf("%s, serial: %v", name, err)
		}
	}
	for _, o := range []matvec.Options{{}, {Words: -1}} {
		if err := matvec.Work[float32](ctx, all[1], o); !errors.Is(err, matvec.ErrOptions) {
			t.Errorf("worker with %+v: %v", o, err)
		}
	}
	if err := matvec.Work[float32](ctx, all[0], matvec.Options{Words: 1}); !errors.Is(err, matvec.ErrOptions) {
		t.Errorf("the host as a worker: %v", err)
	}
}

// TestEnds checks that all ranks return when the context ends, with an error about the wait.
func TestEnds(t *testing.T) {
	all := appstest.Worlds(t, 3, protocol.CloudFPGA)
	cause := errors.New("enough")
	ctx, stop := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, cause)
	defer stop()
	a, x := random[float32](4, 4)
	_, hostErr := matvec.Host(ctx, all[0], a, x, matvec.Options{})
	for name, err := range map[string]error{
		"host":            hostErr,
		"worker":          matvec.Work[float32](ctx, all[1], matvec.Options{Words: 4}),
		"unrolled worker": matvec.Work[float32](ctx, all[2], matvec.Options{Words: 4, Unrolled: true}),
	} {
		if !errors.Is(err, cause) || !strings.Contains(err.Error(), "has waited") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
