package udp

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// SetReceiveBuffer requests a receive buffer of the given size in bytes for a rank's socket, and returns the size that
// the kernel granted. The kernel limits the size to net.core.rmem_max, unless the process has CAP_NET_ADMIN.
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
			// The kernel reports twice the size, because it adds space for its bookkeeping.
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

// pause sleeps. Unlike time.Sleep, it is accurate to some microseconds.
func pause(d time.Duration) {
	left := unix.NsecToTimespec(int64(d))
	for unix.Nanosleep(&left, &left) == unix.EINTR {
	}
}
