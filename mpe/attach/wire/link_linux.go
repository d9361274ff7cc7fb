package wire

import (
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/progress"
)

// Link is a program's connection whose socket is not registered with Go's network poller. Its Read does not block.
type Link struct {
	goroutines
	fd int
	// After Close, the kernel may reuse the number of the descriptor. Close must therefore follow the last read. Writes
	// hold writeMu, and shutdowns hold shutdownMu, while they check closed and use the descriptor.
	closed              atomic.Bool
	writeMu, shutdownMu sync.Mutex
}

// NewLink converts a connection to a Link. It closes conn, which must not be used afterwards.
func NewLink(conn *net.UnixConn) (*Link, error) {
	fd, err := progress.TakeDescriptor(conn)
	return &Link{fd: fd}, err
}

// Read reads the available bytes. It returns ErrNoData if no byte is available.
func (l *Link) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(l.fd, b)
		switch {
		case n > 0:
			return n, nil
		case err == nil:
			return 0, io.EOF
		case err == unix.EAGAIN:
			return 0, ErrNoData
		case err != unix.EINTR:
			return 0, os.NewSyscallError("read", err)
		}
	}
}

// transmit sends b on a socket without causing SIGPIPE, which a program might handle on the calling thread.
func transmit(fd int, b []byte) (int, unix.Errno) {
	n, _, errno := unix.Syscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))),
		uintptr(len(b)),
		unix.MSG_NOSIGNAL, 0, 0)
	return int(n), errno
}

// TryWrite implements Stream.
func (l *Link) TryWrite(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	l.writeMu.Lock()
	defer l.writeMu.Unlock()
	if l.closed.Load() {
		return 0
	}
	n, _ := transmit(l.fd, b) // Read or Write will report the error
	return max(n, 0)
}

// Write writes all of b. It blocks while the socket is full.
func (l *Link) Write(b []byte) (int, error) {
	l.writeMu.Lock()
	defer l.writeMu.Unlock()
	for done := 0; ; {
		if l.closed.Load() {
			return done, net.ErrClosed
		}
		n, errno := transmit(l.fd, b[done:])
		done += max(n, 0)
		switch {
		case done == len(b):
			return done, nil
		case errno == unix.EAGAIN:
			if _, err := unix.Poll([]unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLOUT}}, -1); err != nil &&
				err != unix.EINTR {
				return done, os.NewSyscallError("poll", err)
			}
		case errno != 0 && errno != unix.EINTR:
			return done, os.NewSyscallError("send", errno)
		}
	}
}

// HangUp implements Stream. It wakes up goroutines that wait on the connection.
func (l *Link) HangUp() { l.shutDown(unix.SHUT_RDWR) }

// StopReading implements Stream.
func (l *Link) StopReading() { l.shutDown(unix.SHUT_RD) }

func (l *Link) shutDown(how int) {
	l.shutdownMu.Lock()
	defer l.shutdownMu.Unlock()
	if !l.closed.Load() {
		_ = unix.Shutdown(l.fd, how) // fails if the other side is gone
	}
}

// Close implements Stream.
func (l *Link) Close() {
	l.HangUp()
	l.shutdownMu.Lock()
	l.closed.Store(true)
	l.shutdownMu.Unlock()
	l.writeMu.Lock()
	defer l.writeMu.Unlock()
	unix.Close(l.fd)
}

// Descriptor returns a descriptor that is readable while there is something to read. It is valid until Close.
func (l *Link) Descriptor() int { return l.fd }

// Sleep always returns true, because the descriptor stays readable as long as there is something to read.
func (l *Link) Sleep() bool { return true }
