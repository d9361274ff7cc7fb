//go:build linux || darwin || freebsd

package wire

import (
	"net"
	"os"
)

// getsockopt calls get with the descriptor of a connection. get reads a socket option.
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
