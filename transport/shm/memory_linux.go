package shm

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// The memory of a link is a page with the heads of its rings, the two rings, and a page of
// slots for the advertised buffers in each: first what the lower rank reads. A doorbell is a page.
const (
	pageLen = 4096
	// lowHead and highHead are the places of the heads, on cache lines that no
	// processor fetches together.
	lowHead, highHead = 0, 256
	doorbellLen       = pageLen
)

func linkLen(ring int) int { return slotsAt(ring) + 2*slotsLen }

// slotsAt is the place of the slots.
func slotsAt(ring int) int { return pageLen + 2*ring }

// newMemory returns a descriptor of n bytes of zeros that is sealed: no peer can shrink it.
func newMemory(n int) (fd int, err error) {
	fd, err = unix.MemfdCreate("zrlmpid", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, fmt.Errorf("creating memory: %w", err)
	}
	err = unix.Ftruncate(fd, int64(n))
	if err == nil {
		// Memory that a peer makes shorter would kill us at the next access.
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("creating %d bytes of memory: %w", n, err)
	}
	return fd, nil
}

// mapMemory maps memory that has to be of n bytes and to stay so.
func mapMemory(fd, n int) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || seals&unix.F_SEAL_SHRINK == 0 || st.Size != int64(n) {
		return nil, errors.New("what was handed over is not memory of that size")
	}
	mem, err := unix.Mmap(fd, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping %d bytes: %w", n, err)
	}
	return mem, nil
}

// unmap is the end of mapMemory. Memory that is mapped can be unmapped: there is no
// error to be had.
func unmap(mem []byte) {
	if mem != nil {
		_ = unix.Munmap(mem)
	}
}
