package shm

import (
	"fmt"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// SendPackets writes packets into the ring to peer, and returns the number accepted. SendPackets drops packets that do
// not fit, and all packets if there is no link, without an error. A *SendError reports a mistake of the caller or a
// closed Conn; then no packet was accepted.
func (c *Conn) SendPackets(peer int, packets []mpe.Packet) (sent int, err error) {
	p, err := c.peer(peer)
	if err != nil {
		return 0, err
	}
	for i := range packets {
		most := MaxPayload
		if packets[i].Exposed != 0 {
			most = maxSingleCopy
		}
		if n := len(packets[i].Payload); n > most {
			return 0, c.sendError(peer,
				fmt.Errorf("%w: packet %d of %d has %d bytes of payload; at most %d are allowed",
					ErrBadPacket, i+1, len(packets), n, most))
		}
	}
	if c.closed.Load() {
		return 0, c.sendError(peer, mpe.ErrTransportClosed)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.link
	if l == nil {
		return 0, nil
	}
	for sent < len(packets) && l.send(&packets[sent], c.cfg.Pipelined) {
		l.peerDoorbell.wake()
		sent++
	}
	return sent, nil
}

// SendShort writes a packet with a short header into the ring to peer. It returns false if the ring is full or
// there is no link.
func (c *Conn) SendShort(peer int, header *protocol.ShortHeader, payload []byte) bool {
	if len(payload) > MaxPayload || peer < 0 || peer >= len(c.peers) || c.peers[peer] == nil {
		return false
	}
	p := c.peers[peer]
	p.mu.Lock()
	l := p.link
	sent := l != nil && l.out.putShort(header, payload)
	if sent {
		l.peerDoorbell.wake()
		l.out.prepare()
	}
	p.mu.Unlock()
	return sent
}

// send writes a packet into the ring. If the payload need not be copied, send exposes or advertises the payload
// instead.
func (l *link) send(p *mpe.Packet, pipelined bool) bool {
	if len(p.Payload) > max(MaxPayload, LongPayload(len(l.out.ring))) {
		return false
	}
	switch {
	case !l.canExpose || p.Exposed == 0:
	case len(p.Payload) > MaxPayload, len(p.Payload) >= MinSingleCopy && (!pipelined || l.distance.nextExposed()):
		return l.out.expose(&p.Header, p.Payload, p.Exposed)
	case len(p.Payload) == 0 && len(p.Advertised) > 0 && len(p.Advertised) <= maxSingleCopy &&
		(!l.distance.isFar || l.distance.nextExposed()):
		return l.out.advertise(&p.Header, p.Advertised, p.Exposed)
	}
	if !pipelined || !l.canExpose || !l.distance.shouldTime(len(p.Payload)) {
		return l.out.put(&p.Header, p.Payload)
	}
	return l.putTimed(p)
}

// putTimed writes a packet into the ring, and records the duration of the copy.
func (l *link) putTimed(p *mpe.Packet) bool {
	began := time.Now()
	if !l.out.put(&p.Header, p.Payload) {
		return false
	}
	l.distance.recordCopy(len(p.Payload), time.Since(began))
	l.publishDistance()
	return true
}

// publishDistance informs the peer whether long payload is sent by single copy.
func (l *link) publishDistance() {
	far := uint64(0)
	if l.distance.isFar {
		far = 1
	}
	if l.farFlag.Load() != far {
		l.farFlag.Store(far)
	}
}

// peer returns the peer with the given rank.
func (c *Conn) peer(rank int) (*peer, error) {
	if rank < 0 || rank >= len(c.peers) || c.peers[rank] == nil {
		return nil, c.sendError(rank, fmt.Errorf("%w: use it for another rank of kind software", ErrNoPeer))
	}
	return c.peers[rank], nil
}

// sendError returns a SendError. Once the Conn is closed, its cause is always mpe.ErrTransportClosed.
func (c *Conn) sendError(rank int, err error) error {
	if c.closed.Load() {
		err = mpe.ErrTransportClosed
	}
	return &SendError{Rank: c.cfg.Rank, Peer: rank, Addr: c.cfg.Map.Addr(rank), Err: err}
}
