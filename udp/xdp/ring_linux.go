package xdp

import (
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ring is one side of a ring of descriptors that this process shares with the kernel. T is uint64, the address of a
// frame, for the fill and completion rings, and unix.XDPDesc for the receive and transmit rings. One goroutine at a
// time may use a ring.
type ring[T any] struct {
	memory             []byte
	producer, consumer *atomic.Uint32
	flags              *atomic.Uint32
	entries            []T
	// next is our own position. limit is the other side's position when it was last read, plus the length of the ring if
	// we are the producer.
	next, limit uint32
}

// newRing maps a ring of a socket. The ring has size entries, a power of two.
func newRing[T any](fd int, size int, offset int64, at unix.XDPRingOffset) (*ring[T], error) {
	var entry T
	length := int(at.Desc) + size*int(unsafe.Sizeof(entry))
	memory, err := unix.Mmap(fd, offset, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	word := func(at uint64) *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(&memory[at])) }
	return &ring[T]{
		memory:   memory,
		producer: word(at.Producer), consumer: word(at.Consumer), flags: word(at.Flags),
		entries: unsafe.Slice((*T)(unsafe.Pointer(&memory[at.Desc])), size),
	}, nil
}

func (r *ring[T]) close() {
	if r != nil {
		_ = unix.Munmap(r.memory) // fails only for memory that is not mapped
	}
}

// space returns the number of entries that may be put.
func (r *ring[T]) space() int {
	size := uint32(len(r.entries))
	return int(size - (r.next - r.consumer.Load()))
}

// put adds an entry, which the kernel sees after publish. There must be space.
func (r *ring[T]) put(entry T) {
	*r.entry(r.next) = entry
	r.next++
}

// entry returns the entry at a position.
func (r *ring[T]) entry(position uint32) *T { return &r.entries[position&uint32(len(r.entries)-1)] }

// publish hands all entries that were put to the kernel.
func (r *ring[T]) publish() { r.producer.Store(r.next) }

// available reports whether the kernel has added an entry.
func (r *ring[T]) available() bool {
	if r.limit == r.next {
		r.limit = r.producer.Load()
	}
	return r.limit != r.next
}

// take removes an entry, whose space the kernel may reuse after release. An entry must be available.
func (r *ring[T]) take() T {
	entry := *r.entry(r.next)
	r.next++
	return entry
}

// release gives the space of all taken entries to the kernel.
func (r *ring[T]) release() { r.consumer.Store(r.next) }

// needsWakeup reports whether the kernel must be called to notice new entries.
func (r *ring[T]) needsWakeup() bool { return r.flags.Load()&unix.XDP_RING_NEED_WAKEUP != 0 }

// socketOption calls getsockopt or setsockopt at level SOL_XDP for the value at p.
func socketOption(trap uintptr, fd, option int, p unsafe.Pointer, size uintptr) error {
	length := uint32(size)
	argument := uintptr(unsafe.Pointer(&length))
	if trap == unix.SYS_SETSOCKOPT {
		argument = size
	}
	_, _, errno := unix.Syscall6(trap, uintptr(fd), unix.SOL_XDP, uintptr(option), uintptr(p), argument, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
