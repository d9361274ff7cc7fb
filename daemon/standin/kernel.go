package standin

import (
	"context"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// Rank is the rank on which a kernel runs. *mpe.Engine implements it. A kernel must not close its rank.
type Rank interface {
	mpe.Device
	Send(ctx context.Context, dst int, data []byte, opts mpe.Options) (mpe.Status, error)
	Recv(ctx context.Context, src int, buf []byte, opts mpe.Options) (mpe.Status, error)
}

// counters counts failures, program starts, and successes. A success is a call of a program, or a round of
// another kernel.
type counters struct{ errors, starts, succeeded atomic.Uint64 }

// Kernel performs the computation of a stand-in.
type Kernel interface {
	// Run runs the kernel on a rank. When ctx ends, Run returns the cause of ctx; when the kernel's work is
	// complete, it returns nil. Any other error is permanent: the cluster has no such peer, the rank is shut
	// down (mpe.ErrClosed), or the kernel keeps failing (ErrKeepsFailing). Calls of Run must not overlap. No
	// goroutine of the kernel is running after Run has returned.
	Run(ctx context.Context, r Rank) error
	// Stats returns the kernel's counters and state. It is safe for concurrent use.
	Stats() state.Kernel
	// String returns the specification from which the kernel was created. It omits the arguments of a program,
	// since they may be secret.
	String() string
}

// Env is the environment in which a kernel runs.
type Env struct {
	// FPGAs contains the ranks of FPGAs, in the order of upstream's cluster file, if upstream's compiler uses a
	// tree for collective calls (com_opt 1 and above). It is used by kmeans, matvec and backsub. If it has
	// fewer than two ranks, their collective calls do not use a tree.
	FPGAs []int
	// FailureLimit is the time for which a kernel may fail without a success before Run returns the kernel's
	// error; 0 means no limit.
	FailureLimit time.Duration
	// Log receives a line for each failure and for the completion of the work. If it is nil, these lines are
	// discarded.
	Log *zap.Logger
	// Failed, if not nil, is called when an exchange with other ranks is broken: a message was longer than the
	// kernel accepts, a simulated role broke a rule, or the simulator exited. It must be safe for concurrent
	// use.
	OnFailure func(error)
}

const (
	// DefaultWords is the default maximum length of a message that a kernel accepts: 16 MiB. An FPGA is limited
	// only by its program's buffer. Upstream's largest example, k-means with a million vectors, has messages of
	// up to 2,400,000 words.
	DefaultWords = 1 << 22
	// DefaultLength is the default length, in words, of the messages that a kernel generates: 1 MiB.
	DefaultLength = 1 << 18
)

// New returns the kernel named by spec: "echo", "ring", "sink", "source", "jacobi", "kmeans", "matvec",
// "backsub", "exec:PROGRAM ARGS…", "rtl:SIMULATOR ARGS…" or "rtl-net:SIMULATOR ARGS…". The command in the last
// three is split at blanks, without any quoting. The program must exist, and opts must be valid.
func New(spec string, opts config.KernelOptions, env Env) (Kernel, error) {
	length := opts.Words
	if opts.Words == 0 {
		opts.Words, length = DefaultWords, DefaultLength
	}
	if env.Log == nil {
		env.Log = zap.NewNop()
	}
	if env.OnFailure == nil {
		env.OnFailure = func(error) {}
	}
	kernel, err := config.ParseKernel(spec)
	if err != nil {
		return nil, err
	}
	b := base{
		name: kernel.String(), opts: opts, fpgas: env.FPGAs, length: length, failureLimit: env.FailureLimit,
		log: env.Log.With(zap.Stringer("kernel", kernel)), onFailure: env.OnFailure, counters: new(counters),
	}
	switch kernel.Name {
	case config.KernelEcho:
		return &echo{b}, nil
	case config.KernelRing:
		return &ring{b}, nil
	case config.KernelSink:
		return &sink{b}, nil
	case config.KernelSource:
		return &source{b}, nil
	case config.KernelJacobi:
		return newJacobi(b)
	case config.KernelKmeans:
		return newKmeans(b)
	case config.KernelMatvec:
		return newMatvec(b)
	case config.KernelBacksub:
		return newBacksub(b)
	case config.KernelRTL, config.KernelRTLNet:
		return newRTL(b, kernel)
	}
	return newExec(b, kernel.Command)
}
