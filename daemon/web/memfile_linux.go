package web

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// memoryFile is an unnamed file in memory. No other user can open it.
type memoryFile struct{ *os.File }

// newMemoryFile returns a memory file with the given content.
func newMemoryFile(content []byte) (*memoryFile, error) {
	fd, err := unix.MemfdCreate("zrlmpid-web", unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate("zrlmpid-web", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	m := &memoryFile{os.NewFile(uintptr(fd), "zrlmpid-web")}
	if _, err := m.Write(content); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// path returns a path at which this process can open the file.
func (m *memoryFile) path() string { return fmt.Sprintf("/proc/self/fd/%d", m.Fd()) }

// become replaces the content of m by that of another file. A reader that opens it gets all of the old content
// or all of the new one.
func (m *memoryFile) become(other *memoryFile) error {
	return os.NewSyscallError("dup3", unix.Dup3(int(other.Fd()), int(m.Fd()), unix.O_CLOEXEC))
}
