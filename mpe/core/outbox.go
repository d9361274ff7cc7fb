package core

import (
	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// outbound is a message in the hands of an extended peer's state machine.
type outbound struct {
	// req is the send, or nil when its caller has its buffer back.
	req *Request
	// buf is the payload: the caller's, or a copy of the engine's (own).
	buf  []byte
	own  bool
	used bool
	// out: the last of it has been sent.
	out bool
	// advertised: the peer may be reading buf. flowing: it is forwarded, so that it is not
	// advertised whole.
	advertised, flowing bool
	// isAbort: it is the abort of a collective call.
	isAbort bool
	// ordering waits for it.
	ordering *collective.Ordering
	// length and tag describe it to people once req is gone.
	length int64
	tag    int32
	phases handshake.Phases
}

// sent notes the steps of the message that a packet stands for.
func (o *outbound) sent(h *protocol.ExtHeader, length int64, now handshake.Instant) {
	switch {
	case h.Type == protocol.SendRequest && o.phases.Request == 0:
		o.phases.Request = now
	case h.Type == protocol.Data:
		if o.phases.Clear == 0 {
			o.phases.Clear = now
		}
		if int64(h.Offset)+length == o.length {
			o.phases.Data, o.out = now, true
		}
	}
}

// outbox holds the messages of a peer by their ID.
type outbox struct {
	slots []outbound
	free  []extended.ID
	// kept are those with other IDs than places: they were sent with short headers, and have not become known
	// as acknowledged soon.
	kept map[extended.ID]*outbound
}

// add makes room for a send.
func (b *outbox) add(r *Request) extended.ID {
	o := outbound{req: r, buf: r.buf, used: true, length: int64(len(r.buf)), tag: r.tag, flowing: r.message != nil && r.message.Piece > 0}
	if last := len(b.free) - 1; last >= 0 {
		id := b.free[last]
		b.free = b.free[:last]
		b.slots[id-1] = o
		return id
	}
	b.slots = append(b.slots, o)
	return extended.ID(len(b.slots))
}

// addInternal makes room for a message of the engine's own.
func (b *outbox) addInternal(payload []byte, o *collective.Ordering) extended.ID {
	id := b.add(&Request{buf: payload})
	out := b.at(id)
	out.req, out.ordering, out.isAbort = nil, o, o == nil && len(payload) > 0
	return id
}

func (b *outbox) at(id extended.ID) *outbound {
	if id > extended.ID(len(b.slots)) {
		if o := b.kept[id]; o != nil {
			return o
		}
		return &outbound{own: true} // it was sent with a short header, and is not Kept
	}
	return &b.slots[id-1]
}

// addKept makes room for a message that was sent with a short header.
func (b *outbox) addKept(id extended.ID, o *outbound) {
	if b.kept == nil {
		b.kept = map[extended.ID]*outbound{}
	}
	b.kept[id] = o
}

// remove gives the room back.
func (b *outbox) remove(id extended.ID) {
	if id > extended.ID(len(b.slots)) {
		delete(b.kept, id)
		return
	}
	b.slots[id-1] = outbound{}
	b.free = append(b.free, id)
}
