package memnet

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// transport is one rank's end of a Net. The Net's lock guards it.
type transport struct {
	net    *Net
	rank   int
	queue  []mpe.RxPacket
	wake   sync.Cond
	closed bool
}

// LocalAddr implements mpe.Transport.
func (t *transport) LocalAddr() netip.AddrPort { return Addr(t.rank) }

// Reliable implements mpe.Transport. It returns false, as UDP's transport does.
func (t *transport) Reliable() bool { return false }

// SendHeader implements mpe.Transport.
func (t *transport) SendHeader(peer int, header []byte) error {
	t.net.mu.Lock()
	defer t.net.mu.Unlock()
	if err := t.checkSend(peer); err != nil {
		return err
	}
	t.net.send(t.rank, peer, slices.Clone(header))
	return nil
}

// SendData implements mpe.Transport. The first datagram carries the header, and the others carry the payload, which
// shape pads and fragments.
func (t *transport) SendData(peer int, header, payload []byte, shape protocol.Shape) error {
	t.net.mu.Lock()
	defer t.net.mu.Unlock()
	if err := t.checkSend(peer); err != nil {
		return err
	}
	total := shape.PayloadBytes(uint32(len(payload) / protocol.WordLen))
	head := header
	for off := int64(0); ; head = nil {
		n := shape.PayloadAt(off, total)
		b := make([]byte, int64(len(head))+n)
		copy(b, head)
		copy(b[len(head):], payload[min(off, int64(len(payload))):]) // the rest is padding
		t.net.send(t.rank, peer, b)
		if off += n; off >= total {
			return nil
		}
	}
}

// SendPackets implements mpe.Transport. Each packet is a datagram.
func (t *transport) SendPackets(peer int, packets []mpe.Packet) (int, error) {
	t.net.mu.Lock()
	defer t.net.mu.Unlock()
	if err := t.checkSend(peer); err != nil {
		return 0, err
	}
	for i := range packets {
		if n := protocol.ExtHeaderLen + len(packets[i].Payload); n > protocol.MaxDatagram {
			return 0, fmt.Errorf("memnet: a packet of %d bytes: a datagram has at most %d", n, protocol.MaxDatagram)
		}
	}
	for i := range packets {
		t.net.send(t.rank, peer, slices.Concat(packets[i].Header[:], packets[i].Payload))
	}
	return len(packets), nil
}

// checkSend returns an error if the transport cannot send to the peer.
func (t *transport) checkSend(peer int) error {
	if t.closed {
		return mpe.ErrTransportClosed
	}
	return t.net.checkRank(peer)
}

// Recv implements mpe.Transport.
func (t *transport) Recv(batch []mpe.RxPacket) (int, error) {
	t.net.mu.Lock()
	defer t.net.mu.Unlock()
	for len(t.queue) == 0 && !t.closed {
		t.wake.Wait()
	}
	if t.closed {
		return 0, mpe.ErrTransportClosed
	}
	n := copy(batch, t.queue)
	t.queue = slices.Delete(t.queue, 0, n)
	return n, nil
}

// Close implements mpe.Transport.
func (t *transport) Close() error {
	t.net.mu.Lock()
	defer t.net.mu.Unlock()
	t.closed, t.queue = true, nil
	if t.net.transports[t.rank] == t {
		t.net.transports[t.rank] = nil
	}
	t.wake.Broadcast()
	return nil
}
