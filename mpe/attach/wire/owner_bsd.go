//go:build darwin || freebsd

package wire

import (
	"net"

	"golang.org/x/sys/unix"
)

// solLocal is the level of socket options for Unix sockets.
const solLocal = 0

// OwnerOf returns the user of the process at the other end of conn when that process called listen(2). Source:
// LOCAL_PEERCRED.
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
