package mpe

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
)

// poll polls until done is set, for as long as that is better than to be woken.
func (e *Engine) poll(ctx context.Context, done *atomic.Bool) {
	e.flushCoalesced()
	e.group.Look(ctx, done, nil)
}

// pollOnce polls once, for a caller that will not wait.
func (e *Engine) pollOnce() {
	e.flushCoalesced()
	e.group.Glance()
}

// Await waits for a value on c, or for ctx, whose cause it returns.
func (e *Engine) Await(ctx context.Context, c <-chan struct{}) error {
	e.flushCoalesced()
	return e.group.Await(ctx, c)
}

// owner is what the engine is to its group.
type owner Engine

// Now implements progress.Owner.
func (o *owner) Now() handshake.Instant { return (*Engine)(o).now() }

// Tick implements progress.Owner.
func (o *owner) Tick(now time.Duration) { (*Engine)(o).tickIfDue(now) }

// Armed implements progress.Owner.
func (o *owner) Armed() { (*Engine)(o).setTimer() }

// Failed implements progress.Owner.
func (o *owner) Failed(err error) {
	if !errors.Is(err, ErrTransportClosed) {
		o.cfg.Observer.TransportError(o.rank, err)
	}
}
