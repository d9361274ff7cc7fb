package attach

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/poller"
	"github.com/zrlmpi/zrlmpid/internal/progress"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// input is a link whose Read waits where there is nothing to read: for a while it
// polls, as a program does that waits for the daemon, and then the process's
// poller wakes it.
type input struct {
	*wire.Link
	watch *poller.Watch
	wake  chan struct{}
	spin  progress.SpinPolicy
}

// newSocket returns the stream of a connection to a program. It closes conn unless it fails.
func newSocket(conn *net.UnixConn, oversubscribed bool) (wire.Stream, error) {
	l, err := wire.NewLink(conn)
	if err != nil {
		return nil, err
	}
	in := &input{Link: l, wake: make(chan struct{}, 1)}
	in.spin.Init(oversubscribed)
	if in.watch, err = poller.Add(l.Descriptor(), in); err != nil {
		l.Close()
		return nil, err
	}
	return in, nil
}

// Close implements Stream.
func (in *input) Close() {
	in.watch.Remove()
	in.Link.Close()
}

// Ready implements poller.Handler.
func (in *input) Ready() time.Duration {
	wire.Notify(in.wake)
	return 0
}

// PollAgain implements poller.Handler.
func (in *input) PollAgain() time.Duration { return 0 }

// Read reads what is there, and waits until there is something.
func (in *input) Read(b []byte) (int, error) {
	n, err := in.Link.Read(b)
	if !errors.Is(err, wire.ErrNothing) {
		return n, err
	}
	n, polled, err := in.poll(b)
	if !errors.Is(err, wire.ErrNothing) {
		return n, err
	}
	for errors.Is(err, wire.ErrNothing) {
		if err := in.watch.Arm(); err != nil {
			return 0, err
		}
		_ = in.spin.Sleep(context.Background(), in.wake, polled) // which never ends
		polled = 0
		n, err = in.Link.Read(b)
	}
	return n, err
}

// poll reads for as long as that is better than to be woken. If the caller is to sleep now, polled is
// for how long it has polled.
func (in *input) poll(b []byte) (n int, polled time.Duration, err error) {
	var s progress.Spin
	if !in.spin.Begin(&s) {
		return 0, 0, wire.ErrNothing
	}
	for {
		n, err = in.Link.Read(b)
		if !errors.Is(err, wire.ErrNothing) || s.Polled() && !s.Continue(wire.Clock()) {
			return n, s.End(), err
		}
	}
}
