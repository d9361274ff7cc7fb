package jacobi_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/zrlmpi/zrlmpid/examples/apps/appstest"
	"github.com/zrlmpi/zrlmpid/examples/apps/jacobi"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// The messages of upstream's jacobi2d.cpp, according to its source, for a small grid: the workers in rank order, with
// one call at a time.
const (
	dim     = 8
	workers = 2
	each    = dim / workers
	packet  = 4 // words in a message
	rounds  = 3
	edge    = 128
)

// upstreamHost plays rank 0. Its grid has an extra line at each end, with the edge's value in the border too.
func upstreamHost(ctx context.Context, c *mpi.Comm) ([dim + 2][dim]int32, error) {
	var grid [dim + 2][dim]int32
	for i := range grid {
		for j := range grid[i] {
			if i == 1 || i == dim || j == 0 || j == dim-1 {
				grid[i][j] = edge
			}
		}
	}
	for w := 1; w <= workers; w++ {
		if err := mpi.Send(ctx, c, []int32{rounds}, w, 0); err != nil {
			return grid, err
		}
	}
	for range rounds {
		for w := 1; w <= workers; w++ {
			for i := range each + 2 {
				for k := 0; k < dim; k += packet {
					if err := mpi.Send(ctx, c, grid[(w-1)*each+i][k:][:packet], w, 0); err != nil {
						return grid, err
					}
				}
			}
		}
		for w := 1; w <= workers; w++ {
			for i := range each + 2 {
				var line [dim]int32
				for k := 0; k < dim; k += packet {
					if _, err := mpi.Recv(ctx, c, line[k:][:packet], w, 0); err != nil {
						return grid, err
					}
				}
				if at := (w-1)*each + i; i > 0 && i <= each && at > 1 && at < dim {
					copy(grid[at][1:dim-1], line[1:dim-1])
				}
			}
		}
	}
	return grid, nil
}

func TestWorkersOfUpstreamsHost(t *testing.T) {
	ctx, all := appstest.TestContext(t), appstest.Worlds(t, 1+workers, protocol.CloudFPGA)
	var ranks errgroup.Group
	for _, world := range all[1:] {
		ranks.Go(func() error {
			return jacobi.Work[int32](ctx, world, jacobi.Options{Columns: dim, Words: packet})
		})
	}
	got, err := upstreamHost(ctx, all[0])
	if err = errors.Join(err, ranks.Wait()); err != nil {
		t.Fatal(err)
	}
	want := jacobi.NewGrid[int32](dim, edge)
	jacobi.Serial(want, rounds)
	for i := range dim {
		if line := got[i+1]; fmt.Sprint(line) != fmt.Sprint(want.Line(i)) {
			t.Errorf("line %d: %v, want %v", i, line, want.Line(i))
		}
	}
}

// upstreamWorker plays another rank. Cells that upstream's worker does not set have invalid values here.
func upstreamWorker(ctx context.Context, c *mpi.Comm) error {
	var n [1]int32
	if _, err := mpi.Recv(ctx, c, n[:], 0, 0); err != nil {
		return err
	}
	for range n[0] {
		var old, next [each + 2][dim]int32
		for i := range old {
			for k := 0; k < dim; k += packet {
				if _, err := mpi.Recv(ctx, c, old[i][k:][:packet], 0, 0); err != nil {
					return err
				}
			}
			for j := range next[i] {
				next[i][j] = -77
			}
		}
		for i := 1; i <= each; i++ {
			for j := 1; j < dim-1; j++ {
				next[i][j] = (old[i][j-1] + old[i][j+1] + old[i-1][j] + old[i+1][j]) >> 2
			}
		}
		for i := range next {
			for k := 0; k < dim; k += packet {
				if err := mpi.Send(ctx, c, next[i][k:][:packet], 0, 0); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func TestHostOfUpstreamsWorkers(t *testing.T) {
	ctx, all := appstest.TestContext(t), appstest.Worlds(t, 1+workers, protocol.CloudFPGA)
	var ranks errgroup.Group
	for _, world := range all[1:] {
		ranks.Go(func() error { return upstreamWorker(ctx, world) })
	}
	got, want := jacobi.NewGrid[int32](dim, edge), jacobi.NewGrid[int32](dim, edge)
	jacobi.Serial(want, rounds)
	err := jacobi.Host(ctx, all[0], got, rounds, jacobi.Options{Words: packet})
	if err = errors.Join(err, ranks.Wait()); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got.Cells) != fmt.Sprint(want.Cells) {
		t.Errorf("%v, want\n%v", got.Cells, want.Cells)
	}
}

// TestUnexpectedMessages checks the errors for messages that do not match the options.
func TestUnexpectedMessages(t *testing.T) {
	for name, messages := range map[string][][]int32{
		"negative iterations": {{-1}},
		"empty iterations":    {{}},
		"short line":          {{1}, {1, 2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, all := appstest.TestContext(t), appstest.Worlds(t, 2, protocol.Extended)
			for _, m := range messages {
				if err := mpi.Send(ctx, all[0], m, 1, 0); err != nil {
					t.Fatal(err)
				}
			}
			if err := jacobi.Work[int32](ctx, all[1], jacobi.Options{Columns: 4}); !errors.Is(err, jacobi.ErrMessage) {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("long line", func(t *testing.T) {
		ctx, all := appstest.TestContext(t), appstest.Worlds(t, 2, protocol.Extended)
		for _, m := range [][]int32{{1}, {1, 2, 3, 4, 5}} {
			if err := mpi.Send(ctx, all[0], m, 1, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := jacobi.Work[int32](ctx, all[1], jacobi.Options{Columns: 4}); !errors.Is(err, mpi.ErrTruncate) {
			t.Errorf("%v", err)
		}
	})
}

// TestOneWorkerFails checks that the host does not wait for the other workers.
func TestOneWorkerFails(t *testing.T) {
	ctx, all := appstest.TestContext(t), appstest.Worlds(t, 3, protocol.Extended)
	if err := mpi.Send(ctx, all[1], []int32{1, 2}, 0, 0); err != nil { // not a line
		t.Fatal(err)
	}
	err := jacobi.Host(ctx, all[0], jacobi.NewGrid[int32](8, 1), 1, jacobi.Options{})
	if !errors.Is(err, jacobi.ErrMessage) || ctx.Err() != nil {
		t.Errorf("%v", err)
	}
}
