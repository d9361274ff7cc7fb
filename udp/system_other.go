//go:build !linux

package udp

import (
	"errors"
	"net"
	"net/netip"
	"time"
)

// newSocket is the only socket of this system.
func newSocket(conn *net.UDPConn, peers []netip.AddrPort, _ *Config) (socket, error) {
	return newPlainSocket(conn, peers)
}

// SetReceiveBuffer asks for a receive buffer of the given size in bytes, as a rank
// has, and for half of it as long as the system refuses. It returns what was taken.
func SetReceiveBuffer(conn *net.UDPConn, size int) (granted int, err error) {
	for ; size > 0; size /= 2 {
		if err = conn.SetReadBuffer(size); err == nil {
			return size, nil
		}
	}
	return 0, err
}

// SocketDrops returns an error: the system does not report it.
func SocketDrops(*net.UDPConn) (uint32, error) { return 0, errors.ErrUnsupported }

// pause sleeps.
func pause(d time.Duration) { time.Sleep(d) }
