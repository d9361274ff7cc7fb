package standin_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/standin"
	"github.com/zrlmpi/zrlmpid/examples/apps/jacobi"
	"github.com/zrlmpi/zrlmpid/examples/apps/kmeans"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// world returns the world communicator of the host.
func (c *cluster) world() *mpi.Comm {
	c.t.Helper()
	world, err := mpi.New(c.engines[0])
	if err != nil {
		c.t.Fatal(err)
	}
	return world
}

// loseEachOnce drops one packet of every message: a SEND_REQUEST, a CLEAR_TO_SEND or a DATA packet, in turn.
// FPGAs retransmit these often enough. ACKs, which an FPGA sends only once, are not dropped.
func (c *cluster) loseEachOnce() (lost *int) {
	lost = new(int)
	done := make(map[[2]int]bool) // of the message between these ranks
	order := []protocol.Type{protocol.SendRequest, protocol.ClearToSend, protocol.Data}
	c.net.SetHook(func(from, to int, b []byte) []time.Duration {
		pair := [2]int{min(from, to), max(from, to)}
		h, err := protocol.CloudFPGA.Decode(b)
		switch {
		case err != nil:
		case h.Type == protocol.Ack:
			done[pair] = false
		case !done[pair] && h.Type == order[*lost%len(order)]:
			done[pair] = true
			*lost++
			return nil
		}
		return []time.Duration{0}
	})
	return lost
}

// grid returns a grid that contains various values.
func grid[T jacobi.Cell](size int) *jacobi.Grid[T] {
	g := jacobi.NewGrid(size, T(128))
	for i := range g.Cells {
		g.Cells[i] += T(i * 7919 % 1009)
	}
	return g
}

// computeGrid lets the stand-ins compute a grid, and compares every bit of the result with the serial result.
func computeGrid[T jacobi.Cell](t *testing.T, world *mpi.Comm, size, iterations int, o jacobi.Options) {
	t.Helper()
	got, want := grid[T](size), grid[T](size)
	jacobi.Serial(want, iterations)
	if err := jacobi.Host(within(t, time.Hour), world, got, iterations, o); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Cells, want.Cells) {
		t.Error("differs from the serial result")
	}
}

// TestJacobi runs the host several times with the same stand-ins.
func TestJacobi(t *testing.T) {
	const size, iterations = 30, 3
	for _, lossy := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, 4)
			defer c.close()
			lost := new(int)
			if lossy {
				lost = c.loseEachOnce()
			}
			var ks []*running
			for rank := 1; rank < 4; rank++ {
				ks = append(ks, c.run(rank, "jacobi", config.KernelOptions{Columns: size, Words: 7}))
			}
			computeGrid[int32](t, c.world(), size, iterations, jacobi.Options{Words: 7})
			computeGrid[int32](t, c.world(), size, 1, jacobi.Options{Words: 7})
			synctest.Wait()
			if lossy != (*lost > 100) {
				t.Errorf("%d packets were lost", *lost)
			}
			// 10 lines and 2 more, each of 5 messages, in 4 iterations.
			want := stats{Sent: 4 * 12 * 5, SentWords: 4 * 12 * size, Received: 4*12*5 + 2,
				ReceivedWords: 4*12*size + 2}
			for _, k := range ks {
				if s := k.Stats(); s != want {
					t.Errorf("stats %+v, want %+v", s, want)
				}
				k.cancel(t)
			}
		})
	}
}

func TestJacobiOfFloats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		defer c.close()
		for rank := 1; rank < 3; rank++ {
			c.run(rank, "jacobi", config.KernelOptions{Columns: 9, Lines: 6, Datatype: config.Datatype(protocol.Float)})
		}
		computeGrid[float32](t, c.world(), 9, 5, jacobi.Options{Lines: 6})
	})
}

// TestJacobiDefaults uses the sizes of upstream's example, in which a line needs several datagrams.
func TestJacobiDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 5)
		defer c.close()
		for rank := 1; rank < 5; rank++ {
			c.run(rank, "jacobi", config.KernelOptions{})
		}
		computeGrid[int32](t, c.world(), 512, 2, jacobi.Options{Lines: 128})
	})
}

func TestKmeans(t *testing.T) {
	for _, lossy := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, 4)
			defer c.close()
			lost := new(int)
			if lossy {
				lost = c.loseEachOnce()
			}
			var ks []*running
			for rank := 1; rank < 4; rank++ {
				ks = append(ks, c.run(rank, "kmeans",
					config.KernelOptions{Dimensions: 2, Iterations: 9, NormLimit: 1, Words: 200}))
			}
			vectors := make([]int32, 150)
			for i := range vectors {
				vectors[i] = int32(i * 7919 % 1009)
			}
			o := kmeans.Options{Dimensions: 2, Iterations: 9, NormLimit: 1}
			want, err := kmeans.Serial(vectors, 4, o)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				got, err := kmeans.Host(within(t, time.Hour), c.world(), vectors, 4, o)
				if err != nil || !reflect.DeepEqual(got, want) {
					t.Fatalf("%+v, %v; want %+v", got, err, want)
				}
			}
			synctest.Wait()
			if lossy != (*lost > 10) {
				t.Errorf("%d packets were lost", *lost)
			}
			for i, k := range ks {
				if s := k.Stats(); s.Errors != 0 || s.Received != uint64(2*(1+2*len(want.Norms))) {
					t.Errorf("rank %d: %+v", i+1, s)
				}
				k.cancel(t)
			}
		})
	}
}

// TestAppRestarts checks that a worker waits for a new run after it has received invalid messages from a host.
func TestAppRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		defer c.close()
		k := c.run(1, "jacobi", config.KernelOptions{Columns: 8})
		c.send(1, []byte{1, 0, 0, 0}, protocol.Int) // number of iterations
		c.send(1, words(5, 0), protocol.Int)        // not a line of length 8
		synctest.Wait()
		if s := k.Stats(); s.Errors != 1 || k.logs.FilterMessage("kernel restarts its loop").Len() != 1 {
			t.Errorf("%+v", s)
		}
		computeGrid[int32](t, c.world(), 8, 2, jacobi.Options{})
		k.cancel(t)
	})
}

func TestAppRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClusterFrom(t, 2, 0)
		defer c.close()
		lonely := newClusterFrom(t, 1, 0)
		defer lonely.close()
		for _, spec := range []string{"jacobi", "kmeans", "matvec", "backsub"} {
			for _, c := range []*cluster{c, lonely} {
				if err := c.run(0, spec, config.KernelOptions{}).wait(t); !errors.Is(err, mpe.ErrRank) {
					t.Errorf("%s on rank 0 of %d: %v", spec, len(c.engines), err)
				}
			}
		}
	})
	for spec, all := range map[string][]config.KernelOptions{
		"jacobi": {{Columns: 2}, {Columns: jacobi.MaxColumns + 1}, {Lines: -1}, {Lines: jacobi.MaxColumns + 1}},
		"kmeans": {{Dimensions: -1}, {Dimensions: kmeans.MaxDimensions + 1}, {Iterations: -1}, {NormLimit: -1}},
	} {
		for _, o := range all {
			if k, err := standin.New(spec, o, standin.Env{}); err == nil || k != nil {
				t.Errorf("New(%s, %+v): %v", spec, o, k)
			}
		}
	}
}

// keeper is a rank that records whether it has been closed.
type keeper struct {
	*mpe.Engine
	closed bool
}

func (k *keeper) Close(context.Context) error { k.closed = true; return nil }

// TestAppDoesNotCloseItsRank checks that a kernel leaves the daemon's rank open.
func TestAppDoesNotCloseItsRank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		defer c.close()
		k, rank := c.prepare("kmeans", config.KernelOptions{}), &keeper{Engine: c.engines[1]}
		ctx, stop := context.WithCancel(t.Context())
		go func() { k.ended <- k.Run(ctx, rank) }()
		synctest.Wait()
		stop()
		if err := k.wait(t); err != context.Canceled || rank.closed {
			t.Errorf("ended with %v; closed: %v", err, rank.closed)
		}
		// The rank can be used by another kernel.
		c.run(1, "echo", config.KernelOptions{})
		c.send(1, words(3, 1), protocol.Int)
		c.recv(1, words(3, 1), protocol.Int)
	})
}
