package progress

import (
	"cmp"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Take makes a descriptor of its own of a connection, and closes conn. Go's poller does
// not know it: that one wakes a thread for all that arrives, also while a goroutine polls.
// On few cores that thread preempts the polling one.
func Take(conn interface {
	syscall.Conn
	io.Closer
}) (fd int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return -1, err
	}
	var failed error
	err = raw.Control(func(of uintptr) { fd, failed = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 0) })
	if err = cmp.Or(err, os.NewSyscallError("fcntl", failed)); err != nil {
		return -1, err
	}
	if err := conn.Close(); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
