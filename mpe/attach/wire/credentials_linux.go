package wire

import (
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// CredentialsOf returns the credentials that the process at the other end of conn had when it called connect(2). The
// kernel provides them through SO_PEERCRED and SO_PEERGROUPS.
func CredentialsOf(conn *net.UnixConn) (credentials Credentials, err error) {
	err = getsockopt(conn, func(fd int) error {
		u, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil {
			return err
		}
		credentials.PID, credentials.UID, credentials.GID = int(u.Pid), int(u.Uid), int(u.Gid)
		credentials.Groups, err = groupsOf(uintptr(fd))
		return err
	})
	return credentials, err
}

// groupsOf returns the supplementary groups of the process at the other end of a socket. A user has at most 65536
// groups.
func groupsOf(fd uintptr) ([]int, error) {
	for n := 32; ; n *= 8 {
		gids := make([]uint32, n)
		size := uint32(4 * n)
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&gids[0])), uintptr(unsafe.Pointer(&size)), 0)
		switch {
		case errno == unix.ERANGE && n < 65536:
			continue
		case errno == unix.ENOPROTOOPT: // before Linux 4.13
			return nil, nil
		case errno != 0:
			return nil, errno
		}
		groups := make([]int, min(int(size)/4, n))
		for i := range groups {
			groups[i] = int(gids[i])
		}
		return groups, nil
	}
}

// OwnerOf returns the user who ran the process at the other end of conn when that process called listen(2).
func OwnerOf(conn *net.UnixConn) (uid int, err error) {
	c, err := CredentialsOf(conn)
	return c.UID, err
}
