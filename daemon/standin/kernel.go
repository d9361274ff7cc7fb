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

// Rank is the rank on which a kernel runs. *mpe.Engine implements it. A kernel must not close it.
type Rank interface {
	mpe.Device
	Send(ctx context.Context, dst int, data []byte, opts mpe.Options) (mpe.Status, error)
	Recv(ctx context.Context, src int, buf []byte, opts mpe.Options) (mpe.Status, error)
}

// counters counts failures, starts of programs, and successes: calls of programs, or rounds of other kernels.
type counters struct{ errors, starts, succeeded atomic.Uint64 }

// Kernel is the computation of a stand-in.
type Kernel interface {
	// Run runs the kernel on a rank until ctx ends, and returns its cause, or until the kernel's work is
	// complete, and returns nil. Other errors are permanent: a peer that the cluster does not have, a rank that
	// is shut down (mpe.ErrClosed), and ErrKeepsFailing. Calls of Run must not overlap. When Run returns, no
	// goroutine of the kernel is running.
	Run(ctx context.Context, r Rank) error
	// Stats returns the kernel's counters and state. It is safe for concurrent use.
	Stats() state.Kernel
	// String returns the specification from which the kernel was created, without the arguments of a program,
	// which may be secret.
	String() string
}

// Env is the environment of a kernel.
type Env struct {
	// FPGAs are the ranks of FPGAs in the order of upstream's cluster file, if its compiler makes collective
	// calls a tree (com_opt 1 and more). kmeans, matvec and backsub use it. With fewer than two, their
	// collective calls are flat.
	FPGAs []int
	// FailureLimit is the time after which Run returns the error of a kernel that fails continuously; 0 means
	// never.
	FailureLimit time.Duration
	// Log receives failures and the completion of the work; nil discards them.
	Log *zap.Logger
	// Failed is called when an exchange with other ranks is broken: a message was longer than the kernel
	// accepts, the role of a simulation broke a rule, or its simulator ended. It must be safe for concurrent
	// use. It may be nil.
	Failed func(error)
}

const (
	// DefaultWords is the default length of the longest message that a kernel accepts: 16 MiB. An FPGA is
	// limited only by its program's buffer; upstream's largest example, k-means with a million vectors, has
	// messages of up to 2,400,000 words.
	DefaultWords = 1 << 22
	// DefaultLength is the default length in words of messages that a kernel generates: 1 MiB.
	DefaultLength = 1 << 18
)

// New returns the kernel that spec names: "echo", "ring", "sink", "source", "jacobi", "kmeans", "matvec",
// "backsub", or "exec:PROGRAM ARGS…", "rtl:SIMULATOR ARGS…" or "rtl-net:SIMULATOR ARGS…", whose words are split
// at blanks, without quoting. The program must exist. The options must be valid.
func New(spec string, opts config.KernelOptions, env Env) (Kernel, error) {
	length := opts.Words
	if opts.Words == 0 {
		opts.Words, length = DefaultWords, DefaultLength
	}
	if env.Log == nil {
		env.Log = zap.NewNop()
	}
	if env.Failed == nil {
		env.Failed = func(error) {}
	}
	kernel, err := config.ParseKernel(spec)
	if err != nil {
		return nil, err
	}
	b := base{
		name: kernel.String(), opts: opts, fpgas: env.FPGAs, length: length, failureLimit: env.FailureLimit,
		log: env.Log.With(zap.Stringer("kernel", kernel)), failed: env.Failed, counters: new(counters),
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
