package udp

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// SendPackets sends each packet in a separate datagram, if possible many of them by one system call, and returns the
// number of packets sent. If a device queue or socket buffer stays full for some milliseconds, SendPackets drops the
// remaining packets without an error. It does not pace. The error is a *SendError. If it reports a mistake of the
// caller, nothing was sent.
func (c *Conn) SendPackets(peer int, packets []mpe.Packet) (sent int, err error) {
	if err := c.checkPackets(peer, packets); err != nil {
		return 0, err
	}
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	for sent < len(packets) {
		n := 0
		for ; n < min(len(packets)-sent, len(c.outBatch)); n++ {
			p := &packets[sent+n]
			o := outgoing{peer: peer, parts: [3][]byte{p.Header[:], p.Payload}, mode: sendWhole}
			if p.Fragment {
				o.mode, o.unsegmented = sendFragments, true
			}
			if n > 0 && o.mode != c.outBatch[0].mode {
				break
			}
			c.outBatch[n] = o
		}
		went, err := c.sendAll(c.outBatch[:n], false)
		clear(c.outBatch[:n]) // do not retain the caller's memory
		sent += went
		switch {
		case err == nil:
		case isFull(err):
			return sent, nil
		default:
			return sent, c.sendError(peer, int64(sent), int64(len(packets)), err)
		}
	}
	return sent, nil
}

func (c *Conn) checkPackets(peer int, packets []mpe.Packet) error {
	if !c.cfg.Map.Has(peer) {
		return c.sendError(peer, 0, int64(len(packets)), ErrNoPeer)
	}
	most := protocol.MaxDatagram
	if c.cfg.acceptsLarge(peer) {
		most = MaxDatagram
	}
	for i := range packets {
		// The peer accepts no longer datagram, because its Recv would truncate it.
		if n := protocol.ExtHeaderLen + len(packets[i].Payload); n > most {
			return c.sendError(peer, 0, int64(len(packets)),
				fmt.Errorf("%w: packet %d of %d has %d bytes: a datagram has at most %d",
					ErrBadPacket, i+1, len(packets), n, most))
		}
	}
	return nil
}
