package attach

import (
	"context"
	"errors"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/poller"
	"github.com/zrlmpi/zrlmpid/internal/progress"
)

// input is a link whose Read waits where there is nothing to read: for a while it
// polls, as a program does that waits for the daemon, and then the process's
// poller wakes it.
type input struct {
	*link
	watch *poller.Watch
	wake  chan struct{}
	spin  progress.SpinPolicy
}

func newInput(l *link, oversubscribed bool) (*input, error) {
	in := &input{link: l, wake: make(chan struct{}, 1)}
	in.spin.Init(oversubscribed)
	var err error
	in.watch, err = poller.Add(l.descriptor(), in)
	return in, err
}

// Close implements Stream.
func (in *input) Close() {
	in.watch.Remove()
	in.link.Close()
}

// Ready implements poller.Handler.
func (in *input) Ready() time.Duration {
	notify(in.wake)
	return 0
}

// PollAgain implements poller.Handler.
func (in *input) PollAgain() time.Duration { return 0 }

// Read reads what is there, and waits until there is something.
func (in *input) Read(b []byte) (int, error) {
	n, err := in.link.Read(b)
	if !errors.Is(err, errNothing) {
		return n, err
	}
	if n, err = in.poll(b); !errors.Is(err, errNothing) {
		return n, err
	}
	for errors.Is(err, errNothing) {
		if err := in.watch.Arm(); err != nil {
			return 0, err
		}
		_ = in.spin.Sleep(context.Background(), in.wake) // which never ends
		n, err = in.link.Read(b)
	}
	return n, err
}

// poll reads for as long as that is better than to be woken.
func (in *input) poll(b []byte) (int, error) {
	var s progress.Spin
	if !in.spin.Begin(&s) {
		return 0, errNothing
	}
	defer s.End()
	for {
		n, err := in.link.Read(b)
		if !errors.Is(err, errNothing) {
			return n, err
		}
		if !s.Polled() {
			continue
		}
		if !s.Continue(clock()) {
			return 0, errNothing
		}
	}
}
