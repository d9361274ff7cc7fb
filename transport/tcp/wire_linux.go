package tcp

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// wire is a connection that is not registered with Go's network poller.
//
// Reading requires the inbox's lock, and writing requires the wire's own lock. The inbox closes the descriptor with the
// wire's lock held, and never while it reads from the descriptor.
type wire struct {
	mu sync.Mutex
	fd int // -1 when closed
	// in separates received packets, and direct places payload in callers' memory. ended is set once the wire
	// delivers nothing more. The inbox owns all three.
	in     reader
	direct directReader
	ended  bool
	// hasReceived is set once a packet has been received.
	hasReceived atomic.Bool

	out outflow
}

// read reads data into the reader's buffer. It returns the number of bytes, or 0 and no error at the end of the
// stream.
func (w *wire) read() (int, unix.Errno) {
	room := w.in.readBuffer()
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(w.fd), uintptr(unsafe.Pointer(&room[0])),
		uintptr(len(room)), unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	w.in.advance(int(n))
	return int(n), 0
}

// shut shuts down both directions. The peer notices at once, and the inbox after it has read the data received before.
func (w *wire) shut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out.refuse()
	if w.fd >= 0 {
		_ = unix.Shutdown(w.fd, unix.SHUT_RDWR) // its only error: already shut down
	}
}

// close closes the descriptor. The caller holds the lock.
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

// outflow holds the data queued for a wire, and records how much of it has been written.
type outflow struct {
	blocks
	// firstWritten is the number of bytes of the first block that have been written.
	firstWritten int
	// closed is set once no more packets are accepted, and shutdown once the sending side has been shut down.
	closed, shutdown bool
	// registered is set if the wire is registered with the inbox's epoll instance. wantsWrite is set if the instance
	// also reports that the kernel can accept more data.
	registered, wantsWrite bool
	// lastProgress is the time at which the kernel last accepted data. timer checks that it is recent, and timerRunning
	// is set while the timer runs.
	lastProgress time.Time
	timer        *time.Timer
	timerRunning bool

	msg  unix.Msghdr
	iovs [2 * maxBurst]unix.Iovec
}

// refuse drops queued data, and makes the wire reject further packets.
func (o *outflow) refuse() {
	o.closed = true
	o.blocks = blocks{}
	o.firstWritten = 0
}
