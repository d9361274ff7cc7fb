package web

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// memoryFile is an unnamed in-memory file that other users cannot open.
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

// become atomically replaces the content of m with the content of another file: a reader that opens m gets either all
// of the old content or all of the new content.
func (m *memoryFile) become(other *memoryFile) error {
	return os.NewSyscallError("dup3", unix.Dup3(int(other.Fd()), int(m.Fd()), unix.O_CLOEXEC))
}
