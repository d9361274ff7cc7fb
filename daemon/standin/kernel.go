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

// Rank is the rank on which a kernel runs. *mpe.Engine implements it. A kernel must not
// close it.
type Rank interface {
	mpe.Device
	Send(ctx context.Context, dst int, data []byte, opts mpe.Options) (mpe.Status, error)
	Recv(ctx context.Context, src int, buf []byte, opts mpe.Options) (mpe.Status, error)
}

// counters count failures, starts of programs, and what has gone well: calls of programs, and rounds of other kernels.
type counters struct{ errors, starts, succeeded atomic.Uint64 }

// Kernel is what a stand-in rank computes.
type Kernel interface {
	// Run runs the kernel on a rank until ctx ends, and returns its cause;
	// or until the kernel's work is done, and returns nil. The other errors
	// are those that waiting cannot fix: a peer that the cluster does not
	// have, a rank that is shut down (mpe.ErrClosed), and ErrKeepsFailing. Run is called
	// once at a time. When it returns, no goroutine of the kernel is running.
	Run(ctx context.Context, r Rank) error
	// state.Kernel returns what the kernel has done so far. It may be called at
	// any time.
	Stats() state.Kernel
	// String returns the specification that the kernel was made from, without the arguments
	// of a program, which may be secret.
	String() string
}

// Env is what a kernel is given beside its options.
type Env struct {
	// FPGAs are the ranks of FPGAs in the order of upstream's cluster file, if
	// its compiler makes a tree of collective calls (com_opt 1 and more); kmeans,
	// matvec and backsub. Without, or with fewer than two, these are flat.
	FPGAs []int
	// FailureLimit is the time after which Run returns the error of a kernel that only fails; 0 is never.
	FailureLimit time.Duration
	// Log is the log of failures and of the end of the work; nil discards it.
	Log *zap.Logger
	// Failed is notified when an exchange with other ranks is broken: a message was longer than the kernel takes, or
	// the role of a simulation broke a rule, or its simulator ended. It may be called concurrently; nil is not called.
	Failed func(error)
}

const (
	// DefaultWords is the longest message that a kernel takes if its options do not
	// say: 16 MiB. An FPGA has no limit but its program's buffer; upstream's
	// largest example, k-means with a million vectors, has messages of up to
	// 2,400,000 words.
	DefaultWords = 1 << 22
	// DefaultLength is the length in words of messages that a kernel makes up: 1 MiB.
	DefaultLength = 1 << 18
)

// New makes the kernel that spec names: "echo", "ring", "sink", "source",
// "jacobi", "kmeans", "matvec", "backsub", or "exec:PROGRAM ARGS…", "rtl:SIMULATOR ARGS…" or
// "rtl-net:SIMULATOR ARGS…", whose words are split at blanks, with no quoting. The program must exist. The options must be valid.
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
