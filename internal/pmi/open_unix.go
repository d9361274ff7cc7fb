//go:build unix

package pmi

import (
	"os"
	"syscall"
)

// open returns the connection with the given descriptor.
func open(fd int) (Conn, error) {
	if fd <= 2 {
		return nil, syscall.EBADF
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if t := st.Mode & syscall.S_IFMT; t != syscall.S_IFSOCK && t != syscall.S_IFIFO {
		return nil, syscall.ENOTSOCK
	}
	syscall.CloseOnExec(fd)                               // not inherited by child processes
	if err := syscall.SetNonblock(fd, true); err != nil { // needed for deadlines
		return nil, err
	}
	return os.NewFile(uintptr(fd), "launcher"), nil
}
