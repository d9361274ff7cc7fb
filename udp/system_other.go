//go:build !linux

package udp

import (
	"errors"
	"net"
	"net/netip"
	"time"
)

// newSocket returns a plain socket, the only kind for this system.
func newSocket(conn *net.UDPConn, peers []netip.AddrPort, _ *Config) (socket, error) {
	return newPlainSocket(conn, peers)
}

// openPathSocket returns an error, because only Linux has sockets that wait for several descriptors at once.
func openPathSocket(*net.UDPConn, []netip.AddrPort, *Config) (socket, error) {
	return nil, errors.ErrUnsupported
}

// SetReceiveBuffer requests a receive buffer of the given size in bytes for a rank's socket, and halves the size until
// the system accepts it. It returns the accepted size.
func SetReceiveBuffer(conn *net.UDPConn, size int) (granted int, err error) {
	for ; size > 0; size /= 2 {
		if err = conn.SetReadBuffer(size); err == nil {
			return size, nil
		}
	}
	return 0, err
}

// SocketDrops returns an error, because the system does not report drops.
func SocketDrops(*net.UDPConn) (uint32, error) { return 0, errors.ErrUnsupported }

// pause sleeps.
func pause(d time.Duration) { time.Sleep(d) }
