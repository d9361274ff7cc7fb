//go:build linux || darwin || freebsd

package wire

import (
	"net"
	"os"
)

// getsockopt reads a connection's socket option. For this, it passes the connection's descriptor to the function get.
func getsockopt(conn *net.UnixConn, get func(fd int) error) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = get(int(fd)) }); err != nil {
		return err
	}
	return os.NewSyscallError("getsockopt", inner)
}
