package udp

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// descriptor is a socket that Go's network poller does not know.
type descriptor struct {
	fd     int
	closed atomic.Bool
	// out and in are held while the descriptor is used, so that its number is
	// not another's in the meantime.
	out, in sync.Mutex
}

// wait waits until the socket is ready for what events say, or closed, or
// limit has passed, which is forever if it is negative. It is called with out
// or in held.
func (d *descriptor) wait(events int16, limit time.Duration) error {
	ms := -1
	if limit >= 0 {
		ms = max(int(limit/time.Millisecond), 1)
	}
	for !d.closed.Load() {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(d.fd), Events: events}}, ms)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case n > 0 && !d.closed.Load():
			return nil
		case n == 0:
			return unix.EAGAIN
		}
	}
	return net.ErrClosed
}

func (d *descriptor) close() error {
	if d.closed.Swap(true) {
		return net.ErrClosed
	}
	// It is an error for a socket without a peer, and wakes all the same
	// the goroutine that waits for this one.
	_ = unix.Shutdown(d.fd, unix.SHUT_RDWR)
	d.out.Lock()
	defer d.out.Unlock()
	d.in.Lock()
	defer d.in.Unlock()
	return unix.Close(d.fd)
}
