//go:build darwin || freebsd

package wire

import (
	"net"

	"golang.org/x/sys/unix"
)

// solLocal is the level argument of getsockopt(2) for options of Unix sockets.
const solLocal = 0

// OwnerOf returns the user who ran the process at the other end of conn when that process called listen(2). The kernel
// provides it through LOCAL_PEERCRED.
func OwnerOf(conn *net.UnixConn) (uid int, err error) {
	err = getsockopt(conn, func(fd int) error {
		u, err := unix.GetsockoptXucred(fd, solLocal, unix.LOCAL_PEERCRED)
		if err == nil {
			uid = int(u.Uid)
		}
		return err
	})
	return uid, err
}
