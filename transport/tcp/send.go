package tcp

import (
	"fmt"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// writeLen is the number of payload bytes written under one deadline. It is so small that the deadline requires
// progress, not a minimum speed.
const writeLen = 256 << 10

// SendHeader sends one packet without a payload. Its error is a *SendError.
func (c *Conn) SendHeader(peer int, header []byte) error { return c.send(peer, header, nil) }

// SendData sends one DATA message. It ignores the shape, because a stream has no datagrams. The error is a *SendError.
func (c *Conn) SendData(peer int, header, payload []byte, _ protocol.Shape) error {
	return c.send(peer, header, payload)
}

// peer returns the peer with the given rank.
func (c *Conn) peer(rank int) (*peer, error) {
	if rank < 0 || rank >= len(c.peers) || c.peers[rank] == nil {
		return nil, c.sendError(rank, fmt.Errorf("%w: use it for another rank of kind software", ErrNoPeer), nil)
	}
	return c.peers[rank], nil
}

func (c *Conn) send(rank int, header, payload []byte) error {
	p, err := c.peer(rank)
	if err != nil {
		return err
	}
	if p.profile == protocol.Extended {
		return c.sendError(rank, fmt.Errorf("%w: it is %v, which carries other packets", ErrProfile, p.profile), nil)
	}
	if len(header) != protocol.HeaderLen {
		return c.sendError(rank, fmt.Errorf("a header of %d bytes; a header has %d", len(header), protocol.HeaderLen),
			nil)
	}
	// A packet with an invalid header or length would corrupt the stream.
	h, defect := p.profile.Parse(header)
	if !defect.OK() {
		return c.sendError(rank, defect.Err(), nil)
	}
	if err := h.CheckStreamPayload(len(payload)); err != nil {
		return c.sendError(rank, err, nil)
	}
	if c.ctx.Err() != nil {
		return c.sendError(rank, mpe.ErrTransportClosed, nil)
	}
	l, last := p.currentLink()
	if l == nil {
		return c.sendError(rank, ErrNotConnected, last)
	}
	if err := c.write(p, l, header, payload); err != nil {
		// The peer may have received a part of the packet, so no other packet can follow on this connection.
		l.close(err)
		return c.sendError(rank, ErrNotConnected, err)
	}
	return nil
}

// write writes a packet, in pieces of at most writeLen bytes of payload with a deadline each.
func (c *Conn) write(p *peer, l *link, header, payload []byte) error {
	n := min(len(payload), writeLen)
	p.sendParts = [2][]byte{header, payload[:n]}
	defer clear(p.sendParts[:])
	p.buffers = p.sendParts[:]
	if n == 0 {
		p.buffers = p.sendParts[:1]
	}
	if err := l.stream.SetWriteDeadline(time.Now().Add(c.cfg.WriteTimeout)); err != nil {
		return err
	}
	if _, err := p.buffers.WriteTo(l.stream); err != nil {
		return err
	}
	for payload = payload[n:]; len(payload) > 0; payload = payload[n:] {
		n = min(len(payload), writeLen)
		if err := l.stream.SetWriteDeadline(time.Now().Add(c.cfg.WriteTimeout)); err != nil {
			return err
		}
		if _, err := l.stream.Write(payload[:n]); err != nil {
			return err
		}
	}
	return nil
}

// sendError returns a SendError. Once the Conn is closed, its cause is always mpe.ErrTransportClosed.
func (c *Conn) sendError(rank int, err, last error) error {
	if c.ctx.Err() != nil {
		err = mpe.ErrTransportClosed
	}
	addr := c.cfg.Map.Addr(rank)
	if c.cfg.Map.Has(rank) && c.peers[rank] != nil {
		addr, _ = c.peers[rank].addrAndTLS()
	}
	return &SendError{Rank: c.cfg.Rank, Peer: rank, Addr: addr, Err: err, LastErr: last}
}
