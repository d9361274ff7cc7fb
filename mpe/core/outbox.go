package core

import (
	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// outbound describes an outgoing message to a peer that uses the extended profile.
type outbound struct {
	// request is the send that posted the message. It is nil once the send's buffer was returned to the caller.
	request *Request
	// buf holds the payload. It is the engine's memory if ownsBuf is set, and the caller's otherwise.
	buf     []byte
	ownsBuf bool
	// used means that the slot holds a message.
	used bool
	// allSent means that the message's last byte has been sent.
	allSent bool
	// advertised means that the peer may be reading buf. forwarded means that the message is forwarded while it
	// arrives, so that it cannot be advertised as a whole.
	advertised, forwarded bool
	// isAbort marks a message that aborts a collective call.
	isAbort bool
	// ordering is the ordering that the message's acknowledgement confirms, or nil.
	ordering *collective.Ordering
	// length and tag describe the message even when request is nil.
	length int64
	tag    int32
	phases handshake.Phases
}

// noteSent updates the message's phases when one of its packets is sent.
func (o *outbound) noteSent(header *protocol.ExtHeader, length int64, now handshake.Instant) {
	switch {
	case header.Type == protocol.SendRequest && o.phases.Request == 0:
		o.phases.Request = now
	case header.Type == protocol.Data:
		if o.phases.Clear == 0 {
			o.phases.Clear = now
		}
		if int64(header.Offset)+length == o.length {
			o.phases.Data, o.allSent = now, true
		}
	}
}

// outbox holds the outgoing messages to a peer by their IDs.
type outbox struct {
	// slots holds each message at the index ID−1. free lists the IDs of the unused slots.
	slots []outbound
	free  []extended.ID
	// unslotted holds messages whose IDs are not indexes of slots: messages sent with short headers that the peer did
	// not acknowledge soon.
	unslotted map[extended.ID]*outbound
}

// add adds the message of a send, and returns the message's ID.
func (b *outbox) add(r *Request) extended.ID {
	message := outbound{request: r, buf: r.buf, used: true, length: int64(len(r.buf)), tag: r.tag,
		forwarded: r.message != nil && r.message.Piece > 0}
	if last := len(b.free) - 1; last >= 0 {
		id := b.free[last]
		b.free = b.free[:last]
		b.slots[id-1] = message
		return id
	}
	b.slots = append(b.slots, message)
	return extended.ID(len(b.slots))
}

// addInternal adds a message that the engine itself sends.
func (b *outbox) addInternal(payload []byte, o *collective.Ordering) extended.ID {
	id := b.add(&Request{buf: payload})
	out := b.find(id)
	out.request, out.ordering, out.isAbort = nil, o, o == nil && len(payload) > 0
	return id
}

// find returns a message. For a message that was sent with a short header and never retransmitted, which has no record,
// it returns an empty one.
func (b *outbox) find(id extended.ID) *outbound {
	if id > extended.ID(len(b.slots)) {
		if o := b.unslotted[id]; o != nil {
			return o
		}
		return &outbound{ownsBuf: true} // sent with a short header; no extended.Kept action received
	}
	return &b.slots[id-1]
}

// addKept adds a message that was sent with a short header.
func (b *outbox) addKept(id extended.ID, o *outbound) {
	if b.unslotted == nil {
		b.unslotted = map[extended.ID]*outbound{}
	}
	b.unslotted[id] = o
}

// remove frees an ID.
func (b *outbox) remove(id extended.ID) {
	if id > extended.ID(len(b.slots)) {
		delete(b.unslotted, id)
		return
	}
	b.slots[id-1] = outbound{}
	b.free = append(b.free, id)
}
