package udp

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// descriptor is a socket that the Go runtime's network poller does not manage.
type descriptor struct {
	fd     int
	closed atomic.Bool
	// sendMu is held while the descriptor is used to send, and recvMu while it is used to receive. close acquires both,
	// so that fd is not reused while in use.
	sendMu, recvMu sync.Mutex
}

// wait waits until the socket is ready for the given events, the socket is closed, or the time limit has passed. A
// negative limit means forever. The caller holds sendMu or recvMu.
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
	// Shutdown wakes a goroutine in wait. Its error is ignored, because it always fails for a socket that is not
	// connected.
	_ = unix.Shutdown(d.fd, unix.SHUT_RDWR)
	d.sendMu.Lock()
	defer d.sendMu.Unlock()
	d.recvMu.Lock()
	defer d.recvMu.Unlock()
	return unix.Close(d.fd)
}
