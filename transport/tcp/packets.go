package tcp

import (
	"encoding/binary"
	"fmt"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// offPayload is the offset, in a header of the extended profile, of the payload length in bytes.
const offPayload = 20

// SendPackets sends packets of the extended profile and returns the number accepted: the packets that the kernel took
// and the packets that are queued until it can take more. If CanPoll is false, all packets are queued for the
// connection's writer. SendPackets drops packets that exceed Config.SendQueue, and packets to a peer without a
// connection, without an error. A *SendError reports a mistake of the caller or a closed Conn; then no packet was
// accepted.
func (c *Conn) SendPackets(peer int, packets []mpe.Packet) (int, error) {
	p, err := c.peer(peer)
	if err != nil {
		return 0, err
	}
	if p.profile != protocol.Extended {
		return 0, c.sendError(peer,
			fmt.Errorf("%w: it is %v, which does not carry such packets", ErrProfile, p.profile), nil)
	}
	for i := range packets {
		// A packet with an invalid length would corrupt the stream.
		n := len(packets[i].Payload)
		if n > protocol.MaxStreamPayload {
			return 0, c.sendError(peer, &protocol.StreamPayloadError{Bytes: uint32(n)}, nil)
		}
		if said := binary.LittleEndian.Uint32(packets[i].Header[offPayload:]); int64(said) != int64(n) {
			return 0, c.sendError(peer, fmt.Errorf("the header of packet %d of %d announces %d bytes of payload, but "+
				"it has %d", i+1, len(packets), said, n), nil)
		}
	}
	if c.ctx.Err() != nil {
		return 0, c.sendError(peer, mpe.ErrTransportClosed, nil)
	}
	l, _ := p.currentLink()
	if l == nil {
		return 0, nil
	}
	if l.wire != nil {
		return c.inbox.send(l, packets), nil
	}
	return l.out.enqueue(packets), nil
}
