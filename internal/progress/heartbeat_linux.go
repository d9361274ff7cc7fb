package progress

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/ctxerr"
)

// heartbeat reports whether the poller is alive: whether it notices before ctx is done that something has become readable.
func heartbeat(ctx context.Context) error {
	fd, err := unix.Eventfd(1, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return fmt.Errorf("creating an eventfd: %w", err)
	}
	defer unix.Close(fd)
	found := make(chan struct{})
	w, err := NewWatch(fd, func() { close(found) })
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
