package core

import (
	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/match"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// inbound describes an incoming message, from its announcement until its receive completes.
type inbound struct {
	source int
	comm   uint32
	tag    int32
	// bytes is the announced length, or UnknownLength.
	bytes    int64
	datatype protocol.Datatype

	// handle and order locate the message in the queue of unexpected messages.
	handle match.Handle
	order  uint64
	// recv is the matching receive, or nil.
	recv *Request
	// buf is the destination of the payload: the receive's buffer, or the engine's memory if ownsBuf is set.
	buf     []byte
	ownsBuf bool
	// clearedBytes is the number of bytes that the sender is cleared to send.
	clearedBytes int64
	// highWater is the highest end offset of any byte received so far. storedBytes is the number of bytes received.
	highWater, storedBytes int64
	isComplete             bool // all bytes have been received
	// matchedBefore means that an earlier receive matched the message before its caller stopped waiting.
	matchedBefore bool
	accepted      bool // a receive has matched, and the sender is cleared
	eager         bool // sent without a request
	// advertised identifies the message for Memory.Get, which copies the whole message. It is 0 if the message is not
	// advertised.
	advertised uint64
	phases     handshake.Phases

	// Origin of the message. For a message from an extended peer p, id is its identifier. For a message from any other
	// peer p, the state machine of p holds its deferred SEND_REQUEST. For a message from this rank to itself, local is
	// the send. If p and local are both nil, buf holds the complete message.
	p     *peer
	id    extended.Message
	local *Request
}

// status returns the status that a receive reports for the message.
func (in *inbound) status() Status {
	s := Status{Peer: in.source, Datatype: in.datatype, Tag: int(in.tag), Comm: in.comm, Bytes: in.bytes,
		Phases: in.phases}
	s.Words = wordsOf(in.bytes)
	return s
}

// wordsOf converts a length in bytes to words, rounded up.
func wordsOf(bytes int64) uint32 {
	if bytes < 0 {
		return 0
	}
	return uint32((bytes + protocol.WordLen - 1) / protocol.WordLen)
}

// store writes payload to its destination. It drops bytes beyond the buffer, which deliver reports as truncation.
func (in *inbound) store(offset int64, payload []byte) {
	if offset < int64(len(in.buf)) {
		if to := in.buf[offset:]; !same(to, payload) { // unless it was placed there
			copy(to, payload)
		}
	}
	in.highWater = max(in.highWater, offset+int64(len(payload)))
	in.storedBytes += int64(len(payload))
}

// deliver completes the receive that matches a message, once the message is complete.
func (x *matching) deliver(in *inbound) {
	request := in.recv
	in.recv = nil
	x.adoptTag(request, in)
	request.Status = in.status()
	request.Status.Phases.Start = request.posted
	var err error
	if available := min(in.bytes, in.clearedBytes); int64(len(request.buf)) < in.bytes || available < in.bytes {
		err = &TruncatedError{Source: in.source, Posted: min(int64(len(request.buf)), available), Sent: in.bytes}
	}
	if in.p != nil {
		in.p.recvsDone++
		in.p.recvBytes += uint64(in.bytes)
	}
	x.core.finish(request, err)
	x.inbounds.retire(in)
}

// adoptTag gives a message from a peer whose messages carry no tag the tag of its receive.
func (x *matching) adoptTag(r *Request, in *inbound) {
	if r.tag != AnyTag && in.source != x.core.rank && x.core.peers.at(in.source).noTags() {
		in.tag = r.tag
	}
}

// setDestination makes a receive's buffer the destination of a message. It copies the bytes already stored in the
// engine's memory; later bytes are written directly to the receive's buffer (YAMPII's rule; E15).
func (x *matching) setDestination(in *inbound, request *Request) {
	if in.ownsBuf {
		copy(request.buf, in.buf[:min(in.highWater, int64(len(in.buf)))])
		if !in.isComplete && in.p != nil {
			in.p.takenOver++
			in.p.takenOverRemaining += uint64(max(in.bytes-in.storedBytes, 0))
		}
		x.core.buffers.put(in.buf)
		in.ownsBuf = false
	}
	in.buf, in.recv = request.buf, request
	request.inbound = in
}

// accept schedules a matched message, so that flush clears its sender at the end of the event.
func (x *matching) accept(in *inbound, r *Request) {
	in.accepted = true
	in.phases.Clear = x.core.now
	if !in.ownsBuf && !in.isComplete {
		in.clearedBytes = min(in.bytes, int64(len(r.buf)))
	}
	x.core.pending.accepts = append(x.core.pending.accepts, in)
}

// inboundPool recycles inbound records.
type inboundPool struct {
	// retired holds the records of messages completed in the current event; spare holds records free for reuse.
	retired, spare []*inbound
}

// maxSpare is the maximum number of records kept for reuse, enough for a burst of small messages.
const maxSpare = 1024

// get returns a record to fill in.
func (b *inboundPool) get() *inbound {
	if last := len(b.spare) - 1; last >= 0 {
		in := b.spare[last]
		b.spare = b.spare[:last]
		return in
	}
	return new(inbound)
}

// retire schedules a message's record for reuse. The record stays valid until the end of the event, because the current
// event may still refer to it.
func (b *inboundPool) retire(in *inbound) { b.retired = append(b.retired, in) }

// recycle makes the retired messages available for reuse.
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
