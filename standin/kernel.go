package standin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Rank is the rank on which a kernel runs: the methods of mpe.Device without Close, which
// is not for a kernel to call, and blocking calls. *mpe.Engine implements it.
type Rank interface {
	Rank() int
	Size() int
	Send(ctx context.Context, dst int, data []byte, opts mpe.Options) (mpe.Status, error)
	Recv(ctx context.Context, src int, buf []byte, opts mpe.Options) (mpe.Status, error)
	Peer(rank int) (mpe.PeerInfo, error)
	Start(op mpe.Operation) (mpe.Op, error)
	StartCollective(c *collective.Operation) (mpe.Op, error)
	Probe(ctx context.Context, m mpe.Match, wait bool) (mpe.Status, bool, error)
	Await(ctx context.Context, c <-chan struct{}) error
}

// Kernel is what a stand-in rank computes.
type Kernel interface {
	// Run runs the kernel on a rank until ctx ends, and returns its cause;
	// or until the kernel's work is done, and returns nil. The other errors
	// are those that waiting cannot fix: a peer that the cluster does not
	// have, and a rank that is shut down (mpe.ErrClosed). Run is called
	// once at a time. When it returns, no goroutine of the kernel is running.
	Run(ctx context.Context, r Rank) error
	// Stats returns what the kernel has done so far. It may be called at
	// any time.
	Stats() Stats
	// String returns the specification that the kernel was made from.
	String() string
}

// Options qualify a kernel. Each kernel says which of them it uses.
type Options struct {
	// Peer is the rank with which echo, sink and source exchange messages.
	Peer int
	// Words is the longest message that the kernel takes, in 32-bit words, and
	// the length of those that source, and a ring's rank 0, send; jacobi cuts
	// longer lines. 0 is DefaultWords, or DefaultLength of those sent. A kernel
	// but jacobi, matvec and backsub has a buffer of this size.
	Words uint32
	// Count is how many messages source sends and how often ring goes
	// round; 0 is without end.
	Count int
	// Interval is the time from one message of source to the next; 0 sends
	// each as soon as the one before it has been acknowledged.
	Interval time.Duration
	// Datatype is that of the messages that source, and a ring's rank 0,
	// send, and of jacobi's grid. What else receives takes both.
	Datatype protocol.Datatype
	// Columns is the width of jacobi's grid, and Lines how many of its lines
	// the rank computes: jacobi.Options.
	Columns, Lines int
	// Dimensions, Iterations and NormLimit are kmeans.Options.
	Dimensions, Iterations, NormLimit int
	// FPGAs are the ranks of FPGAs in the order of upstream's cluster file, if
	// its compiler makes a tree of collective calls (com_opt 1 and more); kmeans,
	// matvec and backsub. Without, or with fewer than two, these are flat.
	FPGAs []int
	// Log is the log of failures and of the end of the work; nil discards it.
	Log *zap.Logger
}

const (
	// MaxWords is the largest Options.Words: 1 GiB.
	MaxWords = 1 << 28
	// DefaultWords is the longest message that a kernel takes if Options do not
	// say: 16 MiB. An FPGA has no limit but its program's buffer; upstream's
	// largest example, k-means with a million vectors, has messages of up to
	// 2,400,000 words.
	DefaultWords = 1 << 22
	// DefaultLength is the length in words of messages that a kernel makes up: 1 MiB.
	DefaultLength = 1 << 18
)

// The kernels' names.
const (
	Echo    = "echo"
	Ring    = "ring"
	Sink    = "sink"
	Source  = "source"
	Jacobi  = "jacobi"
	Kmeans  = "kmeans"
	Matvec  = "matvec"
	Backsub = "backsub"
	// execPrefix stands before a program and its arguments.
	execPrefix = "exec:"
)

// New makes the kernel that spec names: "echo", "ring", "sink", "source",
// "jacobi", "kmeans", "matvec", "backsub" or "exec:PROGRAM ARGS…", whose words are
// split at blanks, with no quoting. The program must exist.
func New(spec string, opts Options) (Kernel, error) {
	if err := opts.check(); err != nil {
		return nil, fmt.Errorf("kernel %q: %w", spec, err)
	}
	length := opts.Words
	if opts.Words == 0 {
		opts.Words, length = DefaultWords, DefaultLength
	}
	if opts.Log == nil {
		opts.Log = zap.NewNop()
	}
	b := base{spec: spec, opts: opts, length: length, log: opts.Log.With(zap.String("kernel", spec)), counters: new(counters)}
	switch spec {
	case Echo:
		return &echo{b}, nil
	case Ring:
		return &ring{b}, nil
	case Sink:
		return &sink{b}, nil
	case Source:
		return &source{b}, nil
	case Jacobi:
		return newJacobi(b)
	case Kmeans:
		return newKmeans(b)
	case Matvec:
		return newMatvec(b)
	case Backsub:
		return newBacksub(b)
	}
	if command, ok := strings.CutPrefix(spec, execPrefix); ok {
		return newExec(b, strings.Fields(command))
	}
	return nil, fmt.Errorf("kernel %q: no such kernel: use %s or %sPROGRAM ARGS…", spec,
		strings.Join([]string{Echo, Ring, Sink, Source, Jacobi, Kmeans, Matvec, Backsub}, ", "), execPrefix)
}

func (o *Options) check() error {
	switch {
	case o.Peer < 0:
		return fmt.Errorf("peer %d: must be at least 0", o.Peer)
	case o.Words > MaxWords:
		return fmt.Errorf("words %d: must be at most %d", o.Words, MaxWords)
	case o.Count < 0:
		return fmt.Errorf("count %d: must be at least 0 (0 = unlimited)", o.Count)
	case o.Interval < 0:
		return fmt.Errorf("interval %v: must be at least 0s", o.Interval)
	case o.Datatype > protocol.Float:
		return fmt.Errorf("datatype %d: must be int or float", uint8(o.Datatype))
	}
	return nil
}
