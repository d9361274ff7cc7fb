package attach

import (
	"net"

	"golang.org/x/sys/unix"
)

// ownerOf returns the user of the process that listens at the other end of a connection, as it was when it began to
// listen. Source: SO_PEERCRED.
func ownerOf(conn *net.UnixConn) (uid int, err error) {
	err = getsockopt(conn, func(fd int) error {
		u, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err == nil {
			uid = int(u.Uid)
		}
		return err
	})
	return uid, err
}
