package progress

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestPollerHeartbeat checks that Heartbeat fails while the poller is blocked.
func TestPollerHeartbeat(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := heartbeat(ctx); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Eventfd(1, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	called, back := make(chan struct{}), make(chan struct{})
	w, err := NewWatch(fd, func(bool) time.Duration { close(called); <-back; return 0 })
	if err != nil {
		t.Fatal(err)
	}
	defer w.Remove()
	if err := w.Arm(); err != nil {
		t.Fatal(err)
	}
	<-called
	short, over := context.WithTimeout(ctx, 10*time.Millisecond)
	if err := heartbeat(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one that is stuck: %v", err)
	}
	over()
	close(back)
	if err := heartbeat(ctx); err != nil {
		t.Error(err)
	}
}
