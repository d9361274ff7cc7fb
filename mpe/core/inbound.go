package core

import (
	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/match"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// inbound is a message that has been announced by its sender, from then until a
// receive has all of it.
type inbound struct {
	source int
	comm   uint32
	tag    int32
	// bytes is the length that the sender announced, or UnknownLength.
	bytes    int64
	datatype protocol.Datatype

	// handle and order are its place among the unexpected messages.
	handle match.Handle
	order  uint64
	// req is the receive that it was matched with, or nil.
	req *Request
	// buf is where its payload goes: the receive's buffer, or memory of the
	// engine's (own) while there is no receive.
	buf []byte
	own bool
	// room is how much of the message its sender is cleared to send.
	room int64
	// got is the end of the last byte that has arrived, and stored how many
	// have.
	got, stored int64
	arrived     bool // all of it
	// matchedBefore: it was matched by a receive whose caller no longer waited.
	matchedBefore bool
	accepted      bool // a receive has matched it, and its sender is cleared
	eager         bool // it comes without being asked for
	// advertised, if not 0, is the number by which the transport gets all of it.
	advertised uint64
	phases     handshake.Phases

	// What it is an announcement of: a SEND_REQUEST of p, which is deferred in
	// its state machine; message num of p; or local, which this rank sends to
	// itself. All nil: it is complete, in buf.
	p     *peer
	num   extended.Message
	local *Request
}

// status describes the message for the receive that gets it.
func (in *inbound) status() Status {
	s := Status{Peer: in.source, Datatype: in.datatype, Tag: int(in.tag), Comm: in.comm, Bytes: in.bytes, Phases: in.phases}
	s.Words = wordsOf(in.bytes)
	return s
}

// wordsOf returns a length in words, rounded up.
func wordsOf(bytes int64) uint32 {
	if bytes < 0 {
		return 0
	}
	return uint32((bytes + protocol.WordLen - 1) / protocol.WordLen)
}

// store writes payload where it belongs; what the buffer has no room for is
// dropped, and reported when the message is complete.
func (in *inbound) store(offset int64, payload []byte) {
	if offset < int64(len(in.buf)) {
		if to := in.buf[offset:]; !same(to, payload) { // unless it was placed there
			copy(to, payload)
		}
	}
	in.got = max(in.got, offset+int64(len(payload)))
	in.stored += int64(len(payload))
}

// deliver ends the receive of a message that is complete.
func (x *matching) deliver(in *inbound) {
	r := in.req
	in.req = nil
	x.keepTag(r, in)
	r.Status = in.status()
	r.Status.Phases.Start = r.posted
	var err error
	if available := min(in.bytes, in.room); int64(len(r.buf)) < in.bytes || available < in.bytes {
		err = &TruncatedError{Source: in.source, Posted: min(int64(len(r.buf)), available), Sent: in.bytes}
	}
	if in.p != nil {
		in.p.recvsDone++
		in.p.recvBytes += uint64(in.bytes)
	}
	x.c.finish(r, err)
	x.inbounds.retire(in)
}

// keepTag gives a message from a peer that carries no tags the tag of the
// receive that its order gave it to.
func (x *matching) keepTag(r *Request, in *inbound) {
	if r.tag != AnyTag && in.source != x.c.rank && x.c.peers[in.source].noTags() {
		in.tag = r.tag
	}
}

// takeOver puts a receive in the place of the engine's own memory: what has
// arrived is copied, the rest is written straight into the receive's buffer
// (YAMPII's rule; E15).
func (x *matching) takeOver(in *inbound, r *Request) {
	if in.own {
		copy(r.buf, in.buf[:min(in.got, int64(len(in.buf)))])
		if !in.arrived && in.p != nil {
			in.p.takenOver++
			in.p.takenOverRemaining += uint64(max(in.bytes-in.stored, 0))
		}
		x.c.buffers.put(in.buf)
		in.own = false
	}
	in.buf, in.req = r.buf, r
	r.in = in
}

// accept lets the sender of a message that was matched send it, at the end of the event.
func (x *matching) accept(in *inbound, r *Request) {
	in.accepted = true
	in.phases.Clear = x.c.at
	if !in.own && !in.arrived {
		in.room = min(in.bytes, int64(len(r.buf)))
	}
	x.c.pending.accepts = append(x.c.pending.accepts, in)
}

// inboundPool has the memory of messages.
type inboundPool struct {
	// retired are messages that have ended in the event at hand, and spare are
	// for the next ones.
	retired, spare []*inbound
}

// maxSpare is how many messages are kept for reuse: as many as a burst of small
// ones has at a time.
const maxSpare = 1024

// get returns a message to be filled in.
func (b *inboundPool) get() *inbound {
	if last := len(b.spare) - 1; last >= 0 {
		in := b.spare[last]
		b.spare = b.spare[:last]
		return in
	}
	return new(inbound)
}

// retire releases a message that has ended, at the end of the event: until then
// others that the event has yet to deal with may refer to it.
func (b *inboundPool) retire(in *inbound) { b.retired = append(b.retired, in) }

// recycle keeps the messages that have ended for others.
func (b *inboundPool) recycle() {
	for _, in := range b.retired {
		if len(b.spare) < maxSpare {
			*in = inbound{}
			b.spare = append(b.spare, in)
		}
	}
	clear(b.retired)
	b.retired = b.retired[:0]
}
