//go:build unix

package pmi

import (
	"os"
	"syscall"
)

// open returns the connection that a descriptor is.
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
	syscall.CloseOnExec(fd)                               // it is not for programs that this one starts
	if err := syscall.SetNonblock(fd, true); err != nil { // so that deadlines work
		return nil, err
	}
	return os.NewFile(uintptr(fd), "launcher"), nil
}
