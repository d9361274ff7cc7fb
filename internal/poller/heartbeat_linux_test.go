package poller

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// stuck is a handler that does not return before back is closed.
type stuck struct{ called, back chan struct{} }

func (s stuck) Ready() time.Duration {
	close(s.called)
	<-s.back
	return 0
}

func (s stuck) PollAgain() time.Duration { return 0 }

// A poller that is blocked has no heartbeat.
func TestHeartbeat(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := Heartbeat(ctx); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Eventfd(1, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	s := stuck{make(chan struct{}), make(chan struct{})}
	w, err := Add(fd, s)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Remove()
	if err := w.Arm(); err != nil {
		t.Fatal(err)
	}
	<-s.called
	short, over := context.WithTimeout(ctx, 10*time.Millisecond)
	if err := Heartbeat(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one that is stuck: %v", err)
	}
	over()
	close(s.back)
	if err := Heartbeat(ctx); err != nil {
		t.Error(err)
	}
}
