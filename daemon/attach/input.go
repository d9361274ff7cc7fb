package attach

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/progress"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// pollingReader is a link with a blocking Read. Read first polls for a short time, because the program may reply soon,
// and then sleeps until the process's poller wakes it up.
type pollingReader struct {
	*wire.Link
	watch progress.Watch
	wake  chan struct{}
	spin  progress.SpinPolicy
}

// newSocketStream returns the stream of a program's connection. On success, it closes conn.
func newSocketStream(conn *net.UnixConn, oversubscribed bool) (wire.Stream, error) {
	link, err := wire.NewLink(conn)
	if err != nil {
		return nil, err
	}
	in := &pollingReader{Link: link, wake: make(chan struct{}, 1)}
	in.spin.Init(oversubscribed)
	ready := func(bool) time.Duration { wire.Notify(in.wake); return 0 }
	if in.watch, err = progress.NewWatch(link.Descriptor(), ready); err != nil {
		link.Close()
		return nil, err
	}
	return in, nil
}

// Close implements Stream.
func (in *pollingReader) Close() {
	in.watch.Remove()
	in.Link.Close()
}

// Read reads the available bytes. It blocks until some are available.
func (in *pollingReader) Read(b []byte) (n int, err error) {
	if n, err = in.Link.Read(b); !errors.Is(err, wire.ErrNoData) {
		return n, err
	}
	polled := in.spin.Poll(func() bool {
		n, err = in.Link.Read(b)
		return !errors.Is(err, wire.ErrNoData)
	})
	for errors.Is(err, wire.ErrNoData) {
		if err := in.watch.Arm(); err != nil {
			return 0, err
		}
		_ = in.spin.Sleep(context.Background(), in.wake, polled) // this context is never cancelled
		polled = 0
		n, err = in.Link.Read(b)
	}
	return n, err
}
