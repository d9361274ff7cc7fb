package poller

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/ctxerr"
)

// Heartbeat reports whether the poller is alive: whether it notices before ctx is done
// that something has become readable.
func Heartbeat(ctx context.Context) error {
	fd, err := unix.Eventfd(1, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return fmt.Errorf("creating an eventfd: %w", err)
	}
	defer unix.Close(fd)
	found := make(heartbeat, 1)
	w, err := Add(fd, found)
	if err != nil {
		return err
	}
	defer w.Remove()
	if err := w.Arm(); err != nil {
		return fmt.Errorf("watching a descriptor: %w", err)
	}
	select {
	case <-found:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the poller has not noticed what arrived: %w", ctxerr.Of(ctx))
	}
}

// heartbeat has a value once it was found.
type heartbeat chan struct{}

// Ready implements Handler.
func (p heartbeat) Ready() time.Duration {
	select {
	case p <- struct{}{}:
	default:
	}
	return 0
}

// PollAgain implements Handler.
func (p heartbeat) PollAgain() time.Duration { return 0 }
