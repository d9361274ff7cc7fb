package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// Allowance limits the messages that code outside of the Conn may send and receive in its place. Each is one packet
// with a short header. Before the Conn's next event, it must be informed of all of them, in order, by SentShort and
// ReceivedShort.
type Allowance struct {
	Send, Recv AllowedPackets
	// Unacked is the number of packets received since the last packet was sent.
	Unacked int
}

// AllowedPackets describes the packets that may be sent or received: the fields of the next short header, the maximum
// number of packets, and the maximum number of bytes.
type AllowedPackets struct {
	Digest, Number, Message uint32
	Packets, Bytes          int
}

// Allow returns what may be sent and received in place of the Conn, at least one message of length bytes in each
// direction. It returns false if the Conn has something else to do.
func (c *Conn) Allow(length int) (a Allowance, ok bool) {
	f, send, recv, q := &c.path.flight, &c.sends, &c.recvs, c.path.shorts
	local, remote := c.session.local, c.session.remote
	switch {
	case q == nil, c.closed, c.changed, remote == 0, send.queued != nil, send.eager != nil, !c.controls.empty(),
		f.outstanding() > 0, c.arrivals.hasGaps(), length > c.cfg.MaxPayload, length > c.cfg.EagerLimit:
		return a, false
	}
	// While credit is scarce, messages are announced.
	credit := int(int32(send.messageLimit-send.number)) - max(send.reserve(), int(send.initialCredit/8))
	inFlight := c.path.maxFlightBytes - q.bytes - int64(c.cfg.MaxPayload)
	a.Send = AllowedPackets{
		Digest: protocol.SessionDigest(local, remote), Number: f.nextNumber + uint32(q.count), Message: send.number,
		Packets: min(credit, c.path.maxInFlight-q.count-1),
		Bytes:   int(min(inFlight, int64(send.eagerLimit-send.eagerSent))),
	}
	messages, eager := recv.limits()
	a.Recv = AllowedPackets{
		Digest: protocol.SessionDigest(remote, local), Number: c.arrivals.firstMissing, Message: recv.nextMessage,
		Packets: int(int32(messages - recv.nextMessage)), Bytes: int(eager - recv.eagerBytes),
	}
	a.Unacked = int(c.arrivals.unackedPackets)
	return a, min(a.Send.Packets, a.Recv.Packets) > 0 && min(a.Send.Bytes, a.Recv.Bytes) >= length
}
