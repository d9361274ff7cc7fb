package extended

import (
	"slices"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// common is the state that all parts of a Conn share: the configuration, and the actions to be returned.
type common struct {
	cfg      Config
	acts     []Action // actions of the current event
	controls controls // queue of packets without payload
	ackBuf   []byte   // payload of the ACKs of the last Flush
	ranges   []protocol.Range
	changed  bool // an event has occurred since the last Flush
	stats    Counters
}

// nextAction appends an action and returns a pointer to it, which is faster than copying a finished action. The caller
// sets Kind and all fields that the kind uses.
func (c *common) nextAction() *Action {
	if len(c.acts) == cap(c.acts) {
		c.growActions()
	}
	n := len(c.acts)
	c.acts = c.acts[:n+1]
	return &c.acts[n]
}

// growActions is separate so that nextAction is short enough to be inlined.
func (c *common) growActions() { c.acts = slices.Grow(c.acts, 1) }

func (c *common) drop(r Reason, h *protocol.ExtHeader) {
	c.stats.Drops[r]++
	c.acts = append(c.acts, Action{Kind: Drop, Reason: r, Header: *h})
}

// note appends a Note action and returns a pointer to it, so that the caller can set further fields.
func (c *common) note(e Event) *Action {
	c.stats.Events[e]++
	c.acts = append(c.acts, Action{Kind: Note, Event: e})
	return &c.acts[len(c.acts)-1]
}

// transmitUnnumbered sends an unnumbered packet.
func (c *common) transmitUnnumbered(kind ActionKind, h *protocol.ExtHeader, payload []byte) {
	c.stats.PacketsSent[h.Type]++
	c.stats.BytesSent[h.Type] += uint64(len(payload))
	a := c.nextAction()
	a.Kind, a.Header, a.ID, a.Offset, a.Length, a.Payload = kind, *h, 0, 0, 0, payload
}

// transmitAck sends an ACK with the given header and contents.
func (c *common) transmitAck(h *protocol.ExtHeader, info *protocol.AckInfo) {
	before := len(c.ackBuf)
	c.ackBuf = protocol.AppendAck(c.ackBuf, info)
	c.transmitUnnumbered(TransmitAck, h, c.ackBuf[before:])
}

// ensureRanges allocates the field ranges on first use. It is not allocated earlier, because most Conns never see a
// gap.
func (c *common) ensureRanges() {
	if c.ranges == nil {
		c.ranges = make([]protocol.Range, 0, protocol.MaxAckRanges)
	}
}
