package standin_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/examples/apps/backsub"
	"github.com/zrlmpi/zrlmpid/examples/apps/matvec"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// numbers returns numbers that need rounding.
func numbers(n int) []float32 {
	all := make([]float32, n)
	for i := range all {
		all[i] = float32(i*7919%1009+1) / 1009
	}
	return all
}

// multiply runs the host's collective calls against the stand-ins' calls of Send and Recv, and compares every
// bit of the result with the serial result.
func multiply(t *testing.T, world *mpi.Comm, rows, columns int, o matvec.Options) {
	t.Helper()
	a, x := &matvec.Matrix[float32]{Rows: rows, Columns: columns, Numbers: numbers(rows * columns)}, numbers(columns)
	want, err := matvec.Serial(t.Context(), a, x, o)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := matvec.Host(within(t, time.Hour), world, a, x, o); err != nil || !slices.Equal(got, want) {
		t.Fatalf("%v, %v, want %v", got, err, want)
	}
}

// solve is like multiply, but for a system of equations.
func solve(t *testing.T, world *mpi.Comm, size int, o backsub.Options) {
	t.Helper()
	a, b := &backsub.Matrix[float32]{Size: size, Numbers: numbers(size * size)}, numbers(size)
	for i := range size {
		a.Numbers[i*size+i] += float32(size)
	}
	want, err := backsub.Serial(t.Context(), a, b, o)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := backsub.Host(within(t, time.Hour), world, a, b, o); err != nil || !slices.Equal(got.X, want) {
		t.Fatalf("%v, %v, want %v", got, err, want)
	}
}

// TestMatvec runs the host several times with the same stand-ins.
func TestMatvec(t *testing.T) {
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
				ks = append(ks, c.run(rank, "matvec", config.KernelOptions{Words: 60}))
			}
			world := c.world()
			// three rounds of 3 rows; in the last, two ranks get none of them
			multiply(t, world, 30, 20, matvec.Options{Rows: 3})
			multiply(t, world, 1, 1, matvec.Options{}) // computed by the host alone
			synctest.Wait()
			if lossy != (*lost > 20) {
				t.Errorf("%d packets were lost", *lost)
			}
			for i, k := range ks {
				want := stats{Sent: 2, SentWords: 3*3 + 1, Received: 2*2 + 3 + 1,
					ReceivedWords: 5 + 20 + 3*60 + 5 + 1 + 1}
				if s := k.Stats(); s != want {
					t.Errorf("rank %d: %+v, want %+v", i+1, s, want)
				}
				k.cancel(t)
			}
		})
	}
}

// TestBacksub uses stand-ins that also send pivots to each other.
func TestBacksub(t *testing.T) {
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
				ks = append(ks, c.run(rank, "backsub", config.KernelOptions{}))
			}
			world := c.world()
			solve(t, world, 10, backsub.Options{}) // ranks 1, 2, 3 have 3, 2, 2 rows
			solve(t, world, 1, backsub.Options{})
			synctest.Wait()
			if lossy != (*lost > 20) {
				t.Errorf("%d packets were lost", *lost)
			}
			for i, k := range ks {
				// All ranks get blocks of rank 0's length: 3 rows of 10, 6 and 2 numbers.
				rows := []uint64{3, 2, 2}[i]
				want := stats{Sent: rows*3 + 2, SentWords: rows*3 + 3 + 1, Received: 2*3 + 10 - rows + 1,
					ReceivedWords: 2*3 + 18 + 3 + 10 - rows + 1 + 1 + 1}
				if s := k.Stats(); s != want {
					t.Errorf("rank %d: %+v, want %+v", i+1, s, want)
				}
				k.cancel(t)
			}
		})
	}
}

// TestPace checks that stand-ins wait for as long as the host requests, at the same time as the host.
func TestPace(t *testing.T) {
	for spec, run := range map[string]func(t *testing.T, world *mpi.Comm){
		// 2 rounds of rows of 5 numbers, after 8 rows that the host computes alone.
		"matvec": func(t *testing.T, world *mpi.Comm) {
			multiply(t, world, 8, 5, matvec.Options{Pace: time.Millisecond})
		},
		// Ranks have 2 rows each. From the last one on, there are 1 division and 2, 2, 2, 1, 1, 1, 1, 0 rows
		// above at the rank with the most, after 36 operations by the host alone.
		"backsub": func(t *testing.T, world *mpi.Comm) {
			solve(t, world, 8, backsub.Options{Pace: time.Millisecond})
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, 4)
			defer c.close()
			for rank := 1; rank < 4; rank++ {
				c.run(rank, spec, config.KernelOptions{})
			}
			world, start := c.world(), time.Now()
			run(t, world)
			want := map[string]time.Duration{"matvec": (8*5 + 2*5) * time.Millisecond,
				"backsub": (36 + 8 + 10) * time.Millisecond}[spec]
			if d := time.Since(start); d != want {
				t.Errorf("%s took %v, want %v", spec, d, want)
			}
		})
	}
}

// TestRowsStartAnew checks that messages that do not match the options cause an error, after which the worker
// waits for a new run.
func TestRowsStartAnew(t *testing.T) {
	for spec, broken := range map[string][]byte{
		"matvec":  {3, 0, 0, 0, 21, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0}, // a row is too long
		"backsub": {99, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, 2)
			defer c.close()
			k := c.run(1, spec, config.KernelOptions{Words: 20})
			c.send(1, broken, 0)
			synctest.Wait()
			if s := k.Stats(); s.Errors != 1 || k.logs.FilterMessage("kernel restarts its loop").Len() != 1 {
				t.Errorf("%s: %+v", spec, s)
			}
			if spec == "matvec" {
				multiply(t, c.world(), 7, 20, matvec.Options{})
			} else {
				solve(t, c.world(), 6, backsub.Options{})
			}
			k.cancel(t)
		})
	}
}
