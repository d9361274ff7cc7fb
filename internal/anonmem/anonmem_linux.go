package anonmem

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/rlimit"
)

// spare holds freed buffers, by size. They occupy no memory, but stay mapped: an erroneous use of a freed buffer would
// crash the process if its addresses were unmapped.
var spare = struct {
	sync.Mutex
	buffers map[int][][]byte
}{buffers: make(map[int][][]byte)}

// Get returns n zero bytes. If n is at least MinMapped, pages occupy no memory until they are written to. If the
// address space is exhausted, Get falls back to a larger freed buffer. Without one, it returns an error that names the
// limit of the address space.
func Get(n int) ([]byte, error) {
	if n < MinMapped {
		return make([]byte, n), nil
	}
	size := roundSize(n)
	if b := takeSpare(size); b != nil {
		return b[:n], nil
	}
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		if b := takeSpare(largerSpare(size)); b != nil {
			return b[:n], nil
		}
		return nil, fmt.Errorf("mapping %d bytes of memory: %w", size, rlimit.Mapping(err, size))
	}
	return b[:n], nil
}

// takeSpare removes a freed buffer of the given size from spare and returns it, or returns nil.
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

// largerSpare returns the smallest size above n with a spare buffer, or 0.
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

// Put frees a buffer that Get returned, or a slice of its beginning. The memory belongs to the system again when Put
// returns. The buffer must not be used afterwards.
func Put(b []byte) {
	if cap(b) < MinMapped {
		return
	}
	b = b[:cap(b)]
	if unix.Madvise(b, unix.MADV_DONTNEED) != nil { // as for locked memory
		clear(b)
	}
	spare.Lock()
	defer spare.Unlock()
	spare.buffers[len(b)] = append(spare.buffers[len(b)], b)
}

// Trim returns the memory of the first n bytes of a buffer to the system, rounded down to whole pages. These bytes are
// undefined afterwards.
func Trim(b []byte, n int) {
	if n &^= os.Getpagesize() - 1; n > 0 && cap(b) >= MinMapped {
		_ = unix.Madvise(b[:n], unix.MADV_DONTNEED) // Put retries, or clears
	}
}
