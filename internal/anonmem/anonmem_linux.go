package anonmem

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/rlimit"
)

// spare are buffers that were given back, by their size. They take no memory, but keep
// their addresses: whatever still used one by mistake would end the process if these
// were unmapped.
var spare = struct {
	sync.Mutex
	buffers map[int][][]byte
}{buffers: make(map[int][][]byte)}

// Get returns n bytes, which are 0. A part of them that has not been written to takes no
// memory if they are Least or more. Without address space for them it returns a larger
// buffer that was given back. The error names the limit of the address space.
func Get(n int) ([]byte, error) {
	if n < Least {
		return make([]byte, n), nil
	}
	size := size(n)
	if b := takeSpare(size); b != nil {
		return b[:n], nil
	}
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		if b := takeSpare(largerSpare(size)); b != nil {
			return b[:n], nil
		}
		return nil, fmt.Errorf("mapping %d bytes of memory: %w", size, rlimit.Mapping(err, size))
	}
	return b[:n], nil
}

// takeSpare returns a spare buffer of a size, or nil.
func takeSpare(size int) []byte {
	spare.Lock()
	defer spare.Unlock()
	given := spare.buffers[size]
	last := len(given) - 1
	if last < 0 {
		return nil
	}
	b := given[last]
	given[last] = nil
	if spare.buffers[size] = given[:last]; last == 0 {
		delete(spare.buffers, size)
	}
	return b
}

// largerSpare returns the smallest size above n of which there is a spare buffer, or 0.
func largerSpare(n int) (size int) {
	spare.Lock()
	defer spare.Unlock()
	for s := range spare.buffers {
		if s > n && (size == 0 || s < size) {
			size = s
		}
	}
	return size
}

// Put gives back what Get has returned, or a slice of the beginning of it. The memory is
// the system's when it returns. Nothing may use the buffer any more.
func Put(b []byte) {
	if cap(b) < Least {
		return
	}
	b = b[:cap(b)]
	if unix.Madvise(b, unix.MADV_DONTNEED) != nil { // locked memory, perhaps
		clear(b)
	}
	spare.Lock()
	defer spare.Unlock()
	spare.buffers[len(b)] = append(spare.buffers[len(b)], b)
}

// Trim returns the memory of the first n bytes of a buffer to the system, but for a part
// at their end. They are undefined from then on.
func Trim(b []byte, n int) {
	if n &^= os.Getpagesize() - 1; n > 0 && cap(b) >= Least {
		_ = unix.Madvise(b[:n], unix.MADV_DONTNEED) // Put will do it, or clear
	}
}
