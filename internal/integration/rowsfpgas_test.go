package integration_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/examples/apps/backsub"
	"github.com/zrlmpi/zrlmpid/examples/apps/jacobi"
	"github.com/zrlmpi/zrlmpid/examples/apps/kmeans"
	"github.com/zrlmpi/zrlmpid/examples/apps/matvec"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/job"
	"github.com/zrlmpi/zrlmpid/node"
)

// rowsMatrix returns a matrix and a vector whose product needs rounding.
func rowsMatrix(rows, columns int) (*matvec.Matrix[float32], []float32) {
	a := &matvec.Matrix[float32]{Rows: rows, Columns: columns, Numbers: valuesOf[float32](0, rows, rows*columns)}
	return a, valuesOf[float32](1, rows, columns)
}

// rowsEquations returns a system of equations whose solution needs rounding.
func rowsEquations(n int) (*backsub.Matrix[float32], []float32) {
	a := &backsub.Matrix[float32]{Size: n, Numbers: valuesOf[float32](2, n, n*n)}
	for i := range n {
		a.Numbers[i*n+i] += 1 << 25
	}
	return a, valuesOf[float32](3, n, n)
}

// rowsRun runs rank 0 of a program, and compares its result with a computation on one processor, to the last bit.
type rowsRun func(ctx context.Context, world *mpi.Comm) error

func runMatvec(rows, columns, each int) rowsRun {
	return func(ctx context.Context, world *mpi.Comm) error {
		a, x := rowsMatrix(rows, columns)
		want, err := matvec.Serial(ctx, a, x, matvec.Options{})
		if err != nil {
			return err
		}
		got, err := matvec.Host(ctx, world, a, x, matvec.Options{Rows: each})
		return differs(err, got, want)
	}
}

func runBacksub(n int) rowsRun {
	return func(ctx context.Context, world *mpi.Comm) error {
		a, b := rowsEquations(n)
		want, err := backsub.Serial(ctx, a, b, backsub.Options{})
		if err != nil {
			return err
		}
		got, err := backsub.Host(ctx, world, a, b, backsub.Options{})
		if err != nil {
			return err
		}
		return differs(nil, got.X, want)
	}
}

func runKmeans(vectors int) rowsRun {
	return func(ctx context.Context, world *mpi.Comm) error {
		all := kmeansInput()[:vectors*kmeansDimensions]
		want, err := kmeans.Serial(all, 7, kmeans.Options{})
		if err != nil {
			return err
		}
		got, err := kmeans.Host(ctx, world, all, 7, kmeans.Options{})
		return differs(err, got, want)
	}
}

func runJacobi(size int) rowsRun {
	return func(ctx context.Context, world *mpi.Comm) error {
		got, want := jacobi.NewGrid[int32](size, 128), jacobi.NewGrid[int32](size, 128)
		jacobi.Serial(want, 5)
		err := jacobi.Host(ctx, world, got, 5, jacobi.Options{})
		return differs(err, got.Cells, want.Cells)
	}
}

func differs(err error, got, want any) error {
	if err == nil && !reflect.DeepEqual(got, want) {
		err = fmt.Errorf("%v, want\n%v", got, want)
	}
	return err
}

// standinsOf returns a configuration of rank 0 and stand-ins with the given settings, on free ports.
func standinsOf(t *testing.T, more, rank0 string, standins ...string) *config.Config {
	t.Helper()
	p := newPlace(t)
	var b strings.Builder
	fmt.Fprintf(&b, "control: {socket: %q}\n%s\nranks:\n", filepath.Join(t.TempDir(), "c.sock"), more)
	for i, what := range append([]string{rank0}, standins...) {
		if i > 0 {
			what = "run: standin, " + what
		}
		fmt.Fprintf(&b, "  - {rank: %d, address: %s%d, %s}\n", i, p, i+1, what)
	}
	cfg, err := config.Parse(strings.NewReader(b.String()), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// openHost opens rank 0 in this process.
func openHost(t *testing.T, cfg *config.Config) *mpi.Comm {
	t.Helper()
	d, err := node.Open(cfg, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(ended()) })
	return worldOf(t, d)
}

// upstreamForms maps names to settings for collective calls with six FPGAs.
var upstreamForms = map[string]string{
	"flat": "",
	"tree": "collectives: {upstream: tree}",
	// as in upstream's cluster file
	"tree, listed": "collectives: {upstream: tree, fpgas: [1, 2, 3, 4, 5, 6]}",
}

// TestKernelsFollowUpstream runs the hosts of all programs, in this process and attached, with stand-ins that run the
// programs' kernels, for all forms of upstream's collective calls. Each kernel serves several runs in sequence.
func TestKernelsFollowUpstream(t *testing.T) {
	for name, form := range upstreamForms {
		for kernel, runs := range map[string][]rowsRun{
			"matvec":  {runMatvec(1, 1, 0), runMatvec(30, 20, 2), runMatvec(7, 400, 99), runMatvec(23, 7, 1)},
			"backsub": {runBacksub(1), runBacksub(3), runBacksub(40)},
			"kmeans":  {runKmeans(7), runKmeans(2000), runKmeans(1003)},
			"jacobi":  {runJacobi(30), runJacobi(30)},
		} {
			t.Run(kernel+" "+name, func(t *testing.T) {
				const fpgas = 6
				standin := "kernel: " + kernel
				if kernel == "jacobi" {
					standin += ", kernel_options: {columns: 30}"
				}
				// On a busy machine an FPGA may answer late.
				more := form + "\ndefaults: {deadlines: {ack: 50s}}"
				t.Run("in process", func(t *testing.T) {
					cfg := standinsOf(t, more, "peer: software", slices.Repeat([]string{standin}, fpgas)...)
					startDaemon(t, cfg)
					allRuns(t, openHost(t, cfg), runs)
				})
				t.Run("attached", func(t *testing.T) {
					cfg := standinsOf(t, more, "run: host", slices.Repeat([]string{standin}, fpgas)...)
					socket := filepath.Join(t.TempDir(), "a.sock")
					cfg.Attach.Socket = &socket
					startDaemon(t, cfg)
					t.Setenv(job.EnvSocket, socket)
					t.Setenv(job.EnvRank, "0")
					world, err := job.Init(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					defer world.Finalize(ended())
					allRuns(t, world, runs)
				})
			})
		}
	}
}

func allRuns(t *testing.T, world *mpi.Comm, runs []rowsRun) {
	t.Helper()
	for i, run := range runs {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		err := run(ctx, world)
		stop()
		if err != nil {
			t.Fatalf("run %d: %v", i, err)
		}
	}
}

// fpgaRows runs an FPGA whose program uses only Send and Recv, as upstream's compiler substitutes them for collective
// calls.
type fpgaRows struct {
	world   *mpi.Comm
	ints    *unrolled[int32]
	numbers *unrolled[float32]
}

func newFPGARows(world *mpi.Comm, l layout) *fpgaRows {
	return &fpgaRows{world, &unrolled[int32]{world, 0, l.groups}, &unrolled[float32]{world, 0, l.groups}}
}

// matvec multiplies rows.
func (f *fpgaRows) matvec(ctx context.Context) error {
	shape := make([]int32, 5) // rows, columns, rows at a time, bytes per number, and pace
	if err := f.ints.bcast(ctx, shape); err != nil {
		return err
	}
	rows, columns, each, ranks := int(shape[0]), int(shape[1]), int(shape[2]), f.world.Size()
	x := make([]float32, columns)
	if err := f.numbers.bcast(ctx, x); err != nil {
		return err
	}
	var y []float32
	for range (rows + ranks*each - 1) / (ranks * each) {
		block := make([]float32, each*columns)
		if err := f.numbers.scatter(ctx, nil, block); err != nil {
			return err
		}
		for row := range slices.Chunk(block, columns) {
			sum := float32(0)
			for j := range row {
				p := row[j] * x[j]
				sum += float32(p)
			}
			y = append(y, sum)
		}
	}
	return f.numbers.gather(ctx, y, nil)
}

// backsub solves equations. In a tree, where only rank 0 can be a root, the rank that has computed an unknown sends it
// to rank 0.
func (f *fpgaRows) backsub(ctx context.Context) error {
	shape := make([]int32, 3) // unknowns, bytes of a number, pace
	if err := f.ints.bcast(ctx, shape); err != nil {
		return err
	}
	n, ranks, rank := int(shape[0]), f.world.Size(), f.world.Rank()
	length := 0
	for i := 0; i < n; i += ranks {
		length += n - i
	}
	matrix, b := make([]float32, length), make([]float32, (n+ranks-1)/ranks)
	if err := errors.Join(f.numbers.scatter(ctx, nil, matrix), f.numbers.scatter(ctx, nil, b)); err != nil {
		return err
	}
	at := func(i, j int) float32 { // row i is ours
		for k := rank; k < i; k += ranks {
			j += n - k
		}
		return matrix[j-i]
	}
	for i := n - 1; i >= 0; i-- {
		pivot := make([]float32, 1)
		owner := i % ranks
		if owner == rank {
			b[i/ranks] /= at(i, i)
			pivot[0] = b[i/ranks]
		}
		root := *f.numbers
		var err error
		switch {
		case f.numbers.groups == nil:
			root.root = owner
		case owner == rank:
			err = f.numbers.send(ctx, pivot, 0)
		}
		if err := errors.Join(err, root.bcast(ctx, pivot)); err != nil {
			return err
		}
		for k := rank; k < i; k += ranks {
			p := at(k, i) * pivot[0]
			b[k/ranks] -= float32(p)
		}
	}
	return f.numbers.gather(ctx, b, nil)
}

// TestRowsMeetFPGAs runs our hosts with FPGAs whose programs are independent of our kernels.
func TestRowsMeetFPGAs(t *testing.T) {
	for _, ranks := range []int{2, 3, 5, 7, 10} {
		for _, groups := range [][][]int{nil, groupsOf(upTo(1, ranks))} {
			l := layout{ranks, 0, []int{0}, groups}
			if ranks == 2 && groups != nil {
				continue // with one FPGA, the tree is flat
			}
			worlds := worldsWithFPGAs(t, l)
			for name, x := range map[string]struct {
				runs []rowsRun
				fpga func(f *fpgaRows, ctx context.Context) error
			}{
				"matvec": {[]rowsRun{runMatvec(1, 1, 0), runMatvec(30, 20, 2), runMatvec(23, 350, 1)},
					(*fpgaRows).matvec},
				"backsub": {[]rowsRun{runBacksub(1), runBacksub(3), runBacksub(40)}, (*fpgaRows).backsub},
			} {
				t.Run(name+" "+l.String(), func(t *testing.T) {
					for _, run := range x.runs {
						allRanks(t, worlds, func(ctx context.Context, world *mpi.Comm) error {
							if world.Rank() == 0 {
								return run(ctx, world)
							}
							return x.fpga(newFPGARows(world, l), ctx)
						})
					}
				})
			}
		}
	}
}

// TestExtendedKernels checks that kernels make collective calls if the profile distinguishes them from other messages.
func TestExtendedKernels(t *testing.T) {
	for kernel, run := range map[string]rowsRun{"matvec": runMatvec(23, 7, 2), "backsub": runBacksub(20),
		"kmeans": runKmeans(100)} {
		t.Run(kernel, func(t *testing.T) {
			cfg := standinsOf(t, "collectives: {upstream: tree}\ndefaults: {profile: extended}", "peer: software",
				slices.Repeat([]string{"peer: software, kernel: " + kernel}, 3)...)
			startDaemon(t, cfg)
			allRuns(t, openHost(t, cfg), []rowsRun{run, run})
		})
	}
}

// TestUpstreamHostsMeetTreeKernels runs upstream's host of k-means, compiled by upstream's compiler with com_opt 1,
// with our stand-ins and their kernel, in two groups.
func TestUpstreamHostsMeetTreeKernels(t *testing.T) {
	const fpgas = 7
	p := newUpstreamSource(t).build("kmeans", fpgas, 1)
	cfg := upstreamCluster(t, 1+fpgas, "peer: cpu", "kernel: kmeans", "collectives: {upstream: tree}")
	startDaemon(t, cfg)
	if got, want := printedKmeans(t, runHost(t, cfg, p.host, kmeansFile(t)...)),
		serialKmeans(t, 1+fpgas); !reflect.DeepEqual(got, want) {
		t.Errorf("%v\nwant\n%v", got, want)
	}
}
