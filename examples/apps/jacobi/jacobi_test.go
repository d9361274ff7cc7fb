package jacobi_test

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
	"github.com/zrlmpi/zrlmpid/examples/apps/jacobi"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// random returns a grid with the same values for all types.
func random[T jacobi.Cell](size int) *jacobi.Grid[T] {
	r := rand.New(rand.NewPCG(uint64(size), 1))
	g := jacobi.NewGrid[T](size, 0)
	for i := range g.Cells {
		g.Cells[i] = T(r.Int32N(2_000_001)-1_000_000) / 3
	}
	return g
}

func TestSerial(t *testing.T) {
	// Computed by hand: in a grid of 4 x 4, each inner cell has two neighbours in the border and two inner neighbours.
	for _, c := range []struct {
		border     int32
		iterations int
		ints       int32
		floats     float32
	}{
		{4, 0, 0, 0},
		{4, 1, 2, 2},
		{4, 2, 3, 3},
		{4, 3, 3, 3.5}, // 14/4 is rounded down
		{-1, 1, -1, -0.5},
		{-1, 2, -1, -0.75},
	} {
		ints, floats := jacobi.NewGrid(4, c.border), jacobi.NewGrid(4, float32(c.border))
		jacobi.Serial(ints, c.iterations)
		jacobi.Serial(floats, c.iterations)
		for i := range 4 {
			for j := range 4 {
				wantInt, wantFloat := c.ints, c.floats
				if i%3 == 0 || j%3 == 0 {
					wantInt, wantFloat = c.border, float32(c.border)
				}
				if ints.Line(i)[j] != wantInt || floats.Line(i)[j] != wantFloat {
					t.Errorf("border %d, %d iterations: cell %d,%d is %d and %v, want %d and %v",
						c.border, c.iterations, i, j, ints.Line(i)[j], floats.Line(i)[j], wantInt, wantFloat)
				}
			}
		}
	}
	// Each neighbour counts once.
	g := &jacobi.Grid[int32]{Size: 3, Cells: []int32{1000, 4, 1000, 40, 1000, 400, 1000, 4000, 1000}}
	jacobi.Serial(g, 1)
	if g.Cells[4] != 1111 {
		t.Errorf("the middle is %d", g.Cells[4])
	}
}

// parallel computes a grid with n ranks, and compares the result with Serial bit by bit.
func parallel[T jacobi.Cell](t *testing.T, n int, profile protocol.Profile, size, iterations int, o jacobi.Options) {
	ctx := appstest.TestContext(t)
	got, want := random[T](size), random[T](size)
	jacobi.Serial(want, iterations)
	var ranks errgroup.Group
	for _, world := range appstest.Worlds(t, n, profile) {
		ranks.Go(func() error {
			if world.Rank() == jacobi.Root {
				return jacobi.Host(ctx, world, got, iterations, o)
			}
			o := o
			o.Columns = size
			return jacobi.Work[T](ctx, world, o)
		})
	}
	if err := ranks.Wait(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Cells, want.Cells) {
		t.Errorf("differs from the serial result")
	}
}

func TestParallel(t *testing.T) {
	for _, profile := range []protocol.Profile{protocol.CloudFPGA, protocol.Extended} {
		for ranks := 1; ranks <= 5; ranks++ {
			for _, c := range []struct {
				size, iterations int
				o                jacobi.Options
			}{
				{3, 2, jacobi.Options{}}, // more workers than inner lines
				{5, 1, jacobi.Options{Words: 1}},
				{16, 3, jacobi.Options{Lines: 16}}, // for one worker
				{37, 4, jacobi.Options{Words: 10}}, // nothing divides evenly
				{400, 2, jacobi.Options{}},         // a line is several datagrams
			} {
				t.Run(fmt.Sprintf("%v %d ranks %d", profile, ranks, c.size), func(t *testing.T) {
					parallel[int32](t, ranks, profile, c.size, c.iterations, c.o)
					parallel[float32](t, ranks, profile, c.size, c.iterations, c.o)
				})
			}
		}
	}
}

// TestNoIterations checks that the workers receive the number 0, and return.
func TestNoIterations(t *testing.T) {
	parallel[int32](t, 3, protocol.CloudFPGA, 8, 0, jacobi.Options{})
}

func TestOptions(t *testing.T) {
	ctx := appstest.TestContext(t)
	all := appstest.Worlds(t, 3, protocol.Extended)
	for name, c := range map[string]struct {
		size int
		o    jacobi.Options
	}{
		"small grid":      {2, jacobi.Options{}},
		"wide grid":       {jacobi.MaxColumns + 1, jacobi.Options{}},
		"negative lines":  {8, jacobi.Options{Lines: -1}},
		"negative words":  {8, jacobi.Options{Words: -1}},
		"too few lines":   {8, jacobi.Options{Lines: 3}},
		"too many lines":  {8, jacobi.Options{Lines: jacobi.MaxColumns + 1}},
		"no square":       {-8, jacobi.Options{}},
		"lines for three": {8, jacobi.Options{Lines: 2}},
	} {
		g := &jacobi.Grid[int32]{Size: c.size}
		if c.size > 0 {
			g.Cells = make([]int32, c.size*c.size)
		}
		if err := jacobi.Host(ctx, all[0], g, 1, c.o); !errors.Is(err, jacobi.ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, o := range []jacobi.Options{{Columns: 2}, {Columns: -1}, {Lines: -1}, {Words: -1}} {
		if err := jacobi.Work[int32](ctx, all[1], o); !errors.Is(err, jacobi.ErrOptions) {
			t.Errorf("worker with %+v: %v", o, err)
		}
	}
	if err := jacobi.Work[int32](ctx, appstest.Worlds(t, 1, protocol.Extended)[0], jacobi.Options{}); !errors.Is(err,
		jacobi.ErrOptions) {
		t.Errorf("a worker without a host: %v", err)
	}
}

// TestEnds checks that both sides return when the context ends, with an error about the wait.
func TestEnds(t *testing.T) {
	all := appstest.Worlds(t, 2, protocol.CloudFPGA)
	cause := errors.New("enough")
	ctx, stop := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, cause)
	defer stop()
	for name, err := range map[string]error{
		"host":   jacobi.Host(ctx, all[0], jacobi.NewGrid[int32](8, 1), 1, jacobi.Options{}),
		"worker": jacobi.Work[int32](ctx, all[1], jacobi.Options{}),
	} {
		if !errors.Is(err, cause) || !strings.Contains(err.Error(), "has waited") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
