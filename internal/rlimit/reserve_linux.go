package rlimit

import (
	"sync"

	"golang.org/x/sys/unix"
)

// Reserve is a spare file descriptor. A process without any other free descriptor closes it for a moment to notify a
// peer.
type Reserve struct {
	mu sync.Mutex
	fd int // -1 if it could not be opened
}

// Open opens the descriptor.
func (r *Reserve) Open() {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		fd = -1
	}
	r.fd = fd
}

// Close closes the descriptor.
func (r *Reserve) Close() {
	if r.fd >= 0 {
		unix.Close(r.fd)
	}
	r.fd = -1
}

// Spend calls f, which may open one descriptor and must close it. Calls are serialized.
func (r *Reserve) Spend(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Close()
	f()
	r.Open()
}
