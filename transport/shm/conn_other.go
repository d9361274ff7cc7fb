//go:build !linux

package shm

import (
	"net/netip"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Conn would be all the shared memory of one rank. There is none on this system.
type Conn struct{}

// Listen fails with a *ListenError of ErrUnsupported.
func Listen(cfg Config) (*Conn, error) {
	return nil, &ListenError{Rank: cfg.Rank, Addr: cfg.Map.Addr(cfg.Rank), Err: ErrUnsupported}
}

var _ mpe.PacketTransport = (*Conn)(nil)

// LocalAddr returns no address.
func (*Conn) LocalAddr() netip.AddrPort { return netip.AddrPort{} }

// Reliable returns true.
func (*Conn) Reliable() bool { return true }

// SendHeader fails.
func (*Conn) SendHeader(int, []byte) error { return ErrUnsupported }

// SendData fails.
func (*Conn) SendData(int, []byte, []byte, protocol.Shape) error { return ErrUnsupported }

// SendPackets fails.
func (*Conn) SendPackets(int, []mpe.Packet) (int, error) { return 0, ErrUnsupported }

// Recv fails.
func (*Conn) Recv([]mpe.RxPacket) (int, error) { return 0, ErrUnsupported }

// Sharing returns 0.
func (*Conn) Sharing() (links, singleCopy int) { return 0, 0 }

// Close does nothing.
func (*Conn) Close() error { return nil }
