package sharedmem

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/rlimit"
)

// Create returns a descriptor of n zero bytes of memory. A seal fixes the size.
func Create(n int) (fd int, err error) {
	fd, err = unix.MemfdCreate("zrlmpid", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, fmt.Errorf("creating memory: %w", rlimit.Descriptor(err))
	}
	err = unix.Ftruncate(fd, int64(n))
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("creating %d bytes of memory: %w", n, err)
	}
	return fd, nil
}

// Map maps memory, whose size must be n bytes and sealed against shrinking.
func Map(fd, n int) ([]byte, error) { return mmap(fd, n, n, unix.PROT_READ|unix.PROT_WRITE) }

// MapPart maps the first part bytes of memory, whose size must be n bytes and sealed against shrinking.
func MapPart(fd, n, part int) ([]byte, error) {
	return mmap(fd, n, part, unix.PROT_READ|unix.PROT_WRITE)
}

// MapPartReadOnly is MapPart without write access.
func MapPartReadOnly(fd, n, part int) ([]byte, error) { return mmap(fd, n, part, unix.PROT_READ) }

func mmap(fd, n, part, access int) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || seals&unix.F_SEAL_SHRINK == 0 || st.Size != int64(n) {
		return nil, errors.New("what was handed over is not memory of that size")
	}
	mem, err := unix.Mmap(fd, 0, part, access, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping %d bytes: %w", part, rlimit.Mapping(err, part))
	}
	return mem, nil
}

// Unmap unmaps memory; nil is a no-op. The memory must not be used afterwards. Unmapping valid memory cannot fail, so
// there is no error.
func Unmap(mem []byte) {
	if mem != nil {
		_ = unix.Munmap(mem)
	}
}
