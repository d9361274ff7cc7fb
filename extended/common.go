package extended

import (
	"slices"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// common has the configuration and the output of a Conn, which its parts share.
type common struct {
	cfg      Config
	acts     []Action // of the current event
	controls controls // packets without payload to be sent
	ackBuf   []byte   // payload of the ACKs of the last Flush
	ranges   []protocol.Range
	changed  bool // since the last Flush
	stats    Counters
}

// next appends an action and returns it. The caller sets Kind and the fields that the kind names: it would cost more to
// build the action elsewhere and copy it.
func (c *common) next() *Action {
	if len(c.acts) == cap(c.acts) {
		c.grow()
	}
	n := len(c.acts)
	c.acts = c.acts[:n+1]
	return &c.acts[n]
}

func (c *common) grow() { c.acts = slices.Grow(c.acts, 1) }

func (c *common) drop(r Reason, h *protocol.ExtHeader) {
	c.stats.Drops[r]++
	c.acts = append(c.acts, Action{Kind: Drop, Reason: r, Header: *h})
}

// note appends a Note and returns it, so that the caller can add fields.
func (c *common) note(e Event) *Action {
	c.stats.Events[e]++
	c.acts = append(c.acts, Action{Kind: Note, Event: e})
	return &c.acts[len(c.acts)-1]
}

// transmitUnnumbered sends a packet without a number, with its payload.
func (c *common) transmitUnnumbered(kind ActionKind, h *protocol.ExtHeader, payload []byte) {
	c.stats.PacketsSent[h.Type]++
	c.stats.BytesSent[h.Type] += uint64(len(payload))
	a := c.next()
	a.Kind, a.Header, a.ID, a.Offset, a.Length, a.Payload = kind, *h, 0, 0, 0, payload
}

// transmitAck sends an ACK.
func (c *common) transmitAck(h *protocol.ExtHeader, info *protocol.AckInfo) {
	before := len(c.ackBuf)
	c.ackBuf = protocol.AppendAck(c.ackBuf, info)
	c.transmitUnnumbered(TransmitAck, h, c.ackBuf[before:])
}

// needRanges allocates the ranges of an ACK, which most peers never need.
func (c *common) needRanges() {
	if c.ranges == nil {
		c.ranges = make([]protocol.Range, 0, protocol.MaxAckRanges)
	}
}
