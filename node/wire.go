package node

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/udp"
)

// Wire carries the datagrams of a rank whose kernel exchanges them itself. It implements standin.Wire.
type Wire struct {
	*udp.Conn
	rank *Rank
}

// Wire returns the wire of a started rank, for use by its kernel.
func (r *Rank) Wire() Wire { return Wire{r.sockets.udp, r} }

// Record passes a datagram to the flight recorder.
func (w Wire) Record(peer int, sent bool, datagram []byte) {
	if p := w.rank.FlightRecorder; p != nil {
		if pair := p.Pair(peer); pair != nil {
			pair.Packet(time.Since(w.rank.Engine.StartTime()), sent, len(datagram), datagram, nil)
		}
	}
}

// Addresses returns the address and UDP port of each rank, from the configuration that the rank was planned from.
func (w Wire) Addresses() []netip.AddrPort {
	addresses := make([]netip.AddrPort, len(w.rank.Config.Ranks))
	for i := range w.rank.Config.Ranks {
		r := &w.rank.Config.Ranks[i]
		addresses[r.Rank] = r.Address.AddrPort
	}
	return addresses
}

// Close releases the address.
func (w Wire) Close() error { return ignoreClosed(w.Conn.Close()) }

// ignoreClosed returns err, or nil if err means that the socket was already closed.
func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// nopTransport is the transport for an engine that stays idle because the rank uses a Wire. It receives nothing and
// must not be used to send.
type nopTransport struct {
	addr netip.AddrPort
	once sync.Once
	done chan struct{}
}

var errOnWire = errors.New("its kernel exchanges datagrams itself")

// LocalAddr implements mpe.Transport.
func (t *nopTransport) LocalAddr() netip.AddrPort { return t.addr }

// Reliable implements mpe.Transport.
func (t *nopTransport) Reliable() bool { return true }

// SendHeader implements mpe.Transport.
func (t *nopTransport) SendHeader(peer int, _ []byte) error {
	return fmt.Errorf("nothing is sent to rank %d by the engine of %v: %w", peer, t.addr, errOnWire)
}

// SendData implements mpe.Transport.
func (t *nopTransport) SendData(peer int, header, _ []byte, _ protocol.Shape) error {
	return t.SendHeader(peer, header)
}

// SendPackets implements mpe.Transport.
func (t *nopTransport) SendPackets(peer int, _ []mpe.Packet) (int, error) {
	return 0, t.SendHeader(peer, nil)
}

// Recv waits for Close.
func (t *nopTransport) Recv([]mpe.RxPacket) (int, error) {
	<-t.done
	return 0, mpe.ErrTransportClosed
}

// Close implements mpe.Transport.
func (t *nopTransport) Close() error {
	t.once.Do(func() { close(t.done) })
	return nil
}
