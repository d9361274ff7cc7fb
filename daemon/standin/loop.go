package standin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// base contains the parts common to all kernels.
type base struct {
	name      string
	opts      config.KernelOptions
	fpgas     []int // Env.FPGAs
	length    int   // length of the messages that the kernel generates, in words
	log       *zap.Logger
	onFailure func(error) // Env.OnFailure
	counters  *counters
	// failureLimit is Env.FailureLimit.
	failureLimit time.Duration
}

// String implements Kernel.
func (b *base) String() string { return b.name }

// Stats implements Kernel.
func (b *base) Stats() state.Kernel {
	return state.Kernel{Errors: b.counters.errors.Load(), Starts: b.counters.starts.Load()}
}

// buffer returns a buffer for the longest message, and a function that frees it. The system allocates its pages on the
// first write to them.
func (b *base) buffer() (buf []byte, free func()) {
	return allocBuffer(b.opts.Words * protocol.WordLen)
}

// recv receives a message with any datatype and tag. If the message is too long, the error names the option that must
// be increased.
func (b *base) recv(ctx context.Context, rank Rank, from int, buf []byte) (mpe.Status, error) {
	st, err := rank.Recv(ctx, from, buf, anyMessage)
	if errors.Is(err, handshake.ErrTruncated) {
		err = fmt.Errorf("%w: raise kernel_options.words", err)
		b.onFailure(err)
	}
	return st, err
}

// rankLog returns the kernel's log with a field for the number of the rank.
func (b *base) rankLog(r Rank) *zap.Logger { return b.log.With(zap.Int("rank", r.Rank())) }

// checkPeer returns an error if the configured peer is such that every call to it would fail.
func (b *base) checkPeer(r Rank) error {
	if p := b.opts.Peer; p >= r.Size() || p == r.Rank() {
		return fmt.Errorf("kernel %s on rank %d of %d: peer %d: %w", b.name, r.Rank(), r.Size(), p, mpe.ErrRank)
	}
	return nil
}

// ErrKeepsFailing is returned when a kernel has failed for the duration Env.FailureLimit without a success.
var ErrKeepsFailing = errors.New("every call has failed")

// failureSeries is a series of consecutive failures of a kernel.
type failureSeries struct {
	since     time.Time
	succeeded uint64 // value of counters.succeeded when the series began
}

// add adds a failure to the series, or begins a new series if the kernel has succeeded since. It returns the duration
// of the series.
func (f *failureSeries) add(c *counters) time.Duration {
	if n := c.succeeded.Load(); f.since.IsZero() || f.succeeded != n {
		*f = failureSeries{time.Now(), n}
	}
	return time.Since(f.since)
}

// loop calls the function round until round reports that the work is complete. If round returns an error, loop logs it
// and pauses before it calls round again. It returns ErrKeepsFailing after failureLimit without a success.
func (b *base) loop(ctx context.Context, log *zap.Logger, round func() (done bool, err error)) error {
	var pause backoff
	var row failureSeries
	for {
		done, err := round()
		switch {
		case err == nil && done:
			log.Info("kernel completed")
			return nil
		case err == nil:
			pause.reset()
			b.counters.succeeded.Add(1)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, mpe.ErrClosed):
			return err
		default:
			b.counters.errors.Add(1)
			if age := row.add(b.counters); b.failureLimit > 0 && age >= b.failureLimit {
				return fmt.Errorf("%w for %v, most recently: %w", ErrKeepsFailing, handshake.Round(age), err)
			}
			d := pause.next()
			log.Warn("kernel restarts its loop", zap.Error(err), zap.Duration("after", d))
			if err := sleep(ctx, d); err != nil {
				return err
			}
		}
	}
}

// Minimum and maximum pauses after failures. The first pause equals the initial timeout of deployed nodes. The longest
// pause is short enough that a kernel soon notices when the cause of the failures has been fixed.
const (
	minPause = 100 * time.Millisecond
	maxPause = 5 * time.Second
)

// backoff provides pauses whose duration doubles with each use.
type backoff struct{ last time.Duration }

func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, minPause), maxPause)
	return b.last
}

func (b *backoff) reset() { b.last = 0 }

// sleep waits for d. If ctx is done first, it returns the cause of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
