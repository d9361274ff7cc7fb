package standin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// base is what every kernel has.
type base struct {
	spec     string
	opts     Options
	length   uint32 // of messages that the kernel makes up, in words
	log      *zap.Logger
	counters *counters
}

// String implements Kernel.
func (b *base) String() string { return b.spec }

// Stats implements Kernel.
func (b *base) Stats() Stats { return b.counters.stats() }

// buffer returns room for the longest message, and what is to be called in the end.
// Memory that no message has reached is not resident: the kernel of the operating system
// hands out pages when they are first touched.
func (b *base) buffer() (buf []byte, free func()) { return room(int(b.opts.Words) * protocol.WordLen) }

// recv receives a message of whatever kind, and says of one that is too long what would
// have let it in.
func (b *base) recv(ctx context.Context, rank calls, from int, buf []byte) (mpe.Status, error) {
	st, err := rank.Recv(ctx, from, buf, anything)
	if errors.Is(err, handshake.ErrTruncated) {
		err = fmt.Errorf("%w; kernel_options.words is how many the kernel takes", err)
	}
	return st, err
}

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
