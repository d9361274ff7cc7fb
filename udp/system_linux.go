package udp

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// SetReceiveBuffer asks for a receive buffer of the given size in bytes, as a rank
// has, and returns what the kernel granted. The kernel caps what anybody gets at
// net.core.rmem_max; a process with CAP_NET_ADMIN may have more.
func SetReceiveBuffer(conn *net.UDPConn, size int) (granted int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	controlErr := raw.Control(func(fd uintptr) {
		for _, option := range []int{unix.SO_RCVBUF, unix.SO_RCVBUFFORCE} {
			setErr := unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, option, size)
			if setErr != nil && option == unix.SO_RCVBUF {
				err = setErr
				return
			}
			// The kernel doubles the size for its own book-keeping.
			granted, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
			granted /= 2
			if err != nil || granted >= size {
				return
			}
		}
	})
	if controlErr != nil {
		return 0, controlErr
	}
	return granted, err
}

// pause sleeps, for a time that Go's timers are too coarse for.
func pause(d time.Duration) {
	left := unix.NsecToTimespec(int64(d))
	for unix.Nanosleep(&left, &left) == unix.EINTR {
	}
}
