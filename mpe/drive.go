package mpe

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
)

// drive looks for packets until done is set or c has a value, for as long as that
// is better than to be woken. Done or c may be nil.
func (e *Engine) drive(ctx context.Context, done *atomic.Bool, c <-chan struct{}) {
	e.uncork()
	e.group.Look(ctx, done, c)
}

// glance looks once, for a caller that will not wait.
func (e *Engine) glance() {
	e.uncork()
	e.group.Glance()
}

// Await waits for a value on c, or for ctx, whose cause it returns.
func (e *Engine) Await(ctx context.Context, c <-chan struct{}) error {
	e.uncork()
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
