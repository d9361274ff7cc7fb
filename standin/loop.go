package standin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// base is what every kernel has.
type base struct {
	spec     string
	opts     Options
	log      *zap.Logger
	counters *counters
}

// String implements Kernel.
func (b *base) String() string { return b.spec }

// Stats implements Kernel.
func (b *base) Stats() Stats { return b.counters.stats() }

// buffer returns room for the longest message. Memory that no message has
// reached is not resident: the kernel of the operating system hands out pages
// of a large fresh slice when they are first touched.
func (b *base) buffer() []byte { return make([]byte, int64(b.opts.Words)*protocol.WordLen) }

// begin names the rank in the log and makes its calls counted.
func (b *base) begin(r Rank) (calls, *zap.Logger) {
	return calls{r, b.counters}, b.log.With(zap.Int("rank", r.Rank()))
}

// checkPeer refuses a peer with which no call could ever succeed.
func (b *base) checkPeer(r Rank) error {
	if p := b.opts.Peer; p >= r.Size() || p == r.Rank() {
		return fmt.Errorf("kernel %s on rank %d of %d: peer %d: %w", b.spec, r.Rank(), r.Size(), p, mpe.ErrRank)
	}
	return nil
}

// loop calls round until it reports that the work is done. A round that fails
// is logged, and the next begins after a pause.
func (b *base) loop(ctx context.Context, log *zap.Logger, round func() (done bool, err error)) error {
	var pause backoff
	for {
		done, err := round()
		switch {
		case err == nil && done:
			log.Info("kernel has done its work")
			return nil
		case err == nil:
			pause.reset()
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, mpe.ErrClosed):
			return err
		default:
			b.counters.errors.Add(1)
			d := pause.next()
			log.Warn("kernel starts its loop anew", zap.Error(err), zap.Duration("after", d))
			if err := sleep(ctx, d); err != nil {
				return err
			}
		}
	}
}

// Pauses after failures. The first is as long as the deployed nodes' first
// time-out; the longest is short enough for a person who has mended the cause
// to see that it worked.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// backoff is a pause that doubles.
type backoff struct{ last time.Duration }

func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, firstPause), lastPause)
	return b.last
}

func (b *backoff) reset() { b.last = 0 }

// sleep waits for d, or for ctx, and then returns its cause.
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
