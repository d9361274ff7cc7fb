package tcp

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// wire is a connection that Go's network poller does not know.
//
// It is read with the inbox's lock held, and written to with its own. Its
// descriptor is closed with its own, when the inbox does not read it any more, or not
// yet.
type wire struct {
	mu sync.Mutex
	fd int // -1 when it is closed
	// in are the packets that arrive, and direct those whose payload is read to where it belongs. They
	// are the inbox's, and so is ended, which says that nothing more arrives.
	in     reader
	direct direct
	ended  bool
	// worked says that there was one.
	worked atomic.Bool

	out outflow
}

// read reads into the reader. It returns how many bytes that were, and 0 with no
// error at the end of the stream.
func (w *wire) read() (int, unix.Errno) {
	room := w.in.room()
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(w.fd), uintptr(unsafe.Pointer(&room[0])), uintptr(len(room)), unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	w.in.filled(int(n))
	return int(n), 0
}

// shut ends both directions, of which the inbox takes notice when it has read what
// has arrived, and the peer at once.
func (w *wire) shut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out.refuse()
	if w.fd >= 0 {
		_ = unix.Shutdown(w.fd, unix.SHUT_RDWR) // its only error is that it is so already
	}
}

// close gives the descriptor back. It is called with the lock held.
func (w *wire) close() {
	w.out.refuse()
	if w.out.timer != nil {
		w.out.timer.Stop()
	}
	if w.fd >= 0 {
		unix.Close(w.fd)
		w.fd = -1
	}
}

// outflow is what waits to be written to a wire, and how it is written.
type outflow struct {
	blocks
	// off is how much of the first block was written.
	off int
	// last says that nothing more is taken, and shutdown that the peer was informed that
	// nothing follows.
	last, shutdown bool
	// watched says that the inbox's epoll instance knows the wire, and asked
	// that it was asked to report when the kernel takes more.
	watched, asked bool
	// progress is when the kernel last took something, and timer checks whether
	// that was too long ago. timing says that it runs.
	progress time.Time
	timer    *time.Timer
	timing   bool

	msg  unix.Msghdr
	iovs [2 * burst]unix.Iovec
}

// refuse takes nothing more, and forgets what waits.
func (o *outflow) refuse() {
	o.last = true
	o.blocks = blocks{}
	o.off = 0
}
