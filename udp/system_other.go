//go:build !linux

package udp

import (
	"errors"
	"net"
	"net/netip"
	"time"
)

// newSocket returns the only kind of socket of this system.
func newSocket(conn *net.UDPConn, peers []netip.AddrPort, _ *Config) (socket, error) {
	return newPlainSocket(conn, peers)
}

// SetReceiveBuffer sets the receive buffer of a rank's socket to the given size in bytes, halved until the system
// accepts it. It returns the accepted size.
func SetReceiveBuffer(conn *net.UDPConn, size int) (granted int, err error) {
	for ; size > 0; size /= 2 {
		if err = conn.SetReadBuffer(size); err == nil {
			return size, nil
		}
	}
	return 0, err
}

// SocketDrops returns an error: the system does not report drops.
func SocketDrops(*net.UDPConn) (uint32, error) { return 0, errors.ErrUnsupported }

// pause sleeps.
func pause(d time.Duration) { time.Sleep(d) }
