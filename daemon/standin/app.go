package standin

import (
	"context"
	"fmt"

	"github.com/zrlmpi/zrlmpid/examples/apps/backsub"
	"github.com/zrlmpi/zrlmpid/examples/apps/jacobi"
	"github.com/zrlmpi/zrlmpid/examples/apps/kmeans"
	"github.com/zrlmpi/zrlmpid/examples/apps/matvec"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// workerKernel is a worker for one of the programs in package apps, whose host is rank 0. It serves any number of
// consecutive runs of the host, whereas an FPGA would have to be reset between runs. After a failure, it waits for a
// new run.
type workerKernel struct {
	base
	work worker
}

// worker serves one run.
type worker func(ctx context.Context, world *mpi.Comm) error

// hostRank is the rank that the workers serve.
const hostRank = 0

// Run implements Kernel.
func (k *workerKernel) Run(ctx context.Context, rank Rank) error {
	if rank.Rank() == hostRank || rank.Size() < 2 {
		return fmt.Errorf("kernel %s on rank %d of %d: %w: it works only for a host on rank %d",
			k.name, rank.Rank(), rank.Size(), mpe.ErrRank, hostRank)
	}
	world, err := mpi.New(rank)
	if err != nil {
		return fmt.Errorf("kernel %s on rank %d: %w", k.name, rank.Rank(), err)
	}
	return k.loop(ctx, k.rankLog(rank), func() (bool, error) { return false, k.work(ctx, world) })
}

// newWorkerKernel returns a kernel that runs the function work. The argument wrong is the error in the kernel's
// options, or nil if they are valid. If it is non-nil, newWorkerKernel returns an error too.
func newWorkerKernel(b base, wrong error, work worker) (Kernel, error) {
	if wrong != nil {
		return nil, fmt.Errorf("kernel %q: %w", b.name, wrong)
	}
	return &workerKernel{b, work}, nil
}

// newJacobi returns a worker for package jacobi.
func newJacobi(b base) (Kernel, error) {
	o := jacobi.Options{Columns: b.opts.Columns, Lines: b.opts.Lines, Words: b.opts.Words}
	work := jacobi.Work[int32]
	if protocol.Datatype(b.opts.Datatype) == protocol.Float {
		work = jacobi.Work[float32]
	}
	return newWorkerKernel(b, o.Check(), func(ctx context.Context, world *mpi.Comm) error { return work(ctx, world, o) })
}

// newKmeans returns a worker for package kmeans.
func newKmeans(b base) (Kernel, error) {
	o := kmeans.Options{
		Dimensions: b.opts.Dimensions, Iterations: b.opts.Iterations, NormLimit: b.opts.NormLimit,
		Words: b.opts.Words, FPGAs: b.fpgas,
	}
	return newWorkerKernel(b, o.Check(), func(ctx context.Context,
		world *mpi.Comm) error {
		return kmeans.Work(ctx, world, o)
	})
}

// newMatvec returns a worker for package matvec with elements of type float32. Like an FPGA's program, the worker uses
// Send and Recv instead of collective calls.
func newMatvec(b base) (Kernel, error) {
	o := matvec.Options{Words: b.opts.Words, Unrolled: true, FPGAs: b.fpgas}
	return newWorkerKernel(b, o.Check(),
		func(ctx context.Context, world *mpi.Comm) error { return matvec.Work[float32](ctx, world, o) })
}

// newBacksub returns a worker for package backsub. Like newMatvec's worker, it uses Send and Recv.
func newBacksub(b base) (Kernel, error) {
	o := backsub.Options{Words: b.opts.Words, Unrolled: true, FPGAs: b.fpgas}
	return newWorkerKernel(b, o.Check(),
		func(ctx context.Context, world *mpi.Comm) error { return backsub.Work[float32](ctx, world, o) })
}
