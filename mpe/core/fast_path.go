package core

import (
	"math"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/match"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// This file handles single-packet messages between ranks that share memory. It is the engine's fast path: from the
// caller's buffer to the transport, and from there to the posted receive. All other messages take the general path
// through the state machine's actions.

// shortLink returns the peer's link if it supports short headers, or nil. It needs no lock.
func (p *peer) shortLink() *extendedLink {
	if p == nil || p.extended == nil || p.extended.memory == nil {
		return nil
	}
	return p.extended
}

// sendShort sends a message with a short header, if that is possible now, and reports whether it did. It does not use
// the time of the event: the driver calls Begin afterwards, if NeedsTime reports true, and then Post or RecordSendNow.
func (l *extendedLink) sendShort(buf []byte, comm uint32, tag int32, datatype protocol.Datatype) bool {
	e := l.p.e
	if e.state != running {
		return false
	}
	x := &e.connActions
	x.op = extended.SendOp{Length: int64(len(buf)), Comm: comm, Tag: uint32(tag), Datatype: datatype}
	return l.conn.PrepareShort(&x.op, &x.short) && l.memory.SendShort(l.p.rank, &x.short, buf)
}

// SendShort is like sendShort, but sends the message of a request.
func (e *Core) SendShort(request *Request, blocking bool) bool {
	if request.kind != OpSend || request.flow != nil {
		return false
	}
	l := request.p.shortLink()
	return l != nil && !l.mustAnnounce(blocking && request.message == nil, len(request.buf)) &&
		l.sendShort(request.buf, request.comm, request.tag, request.datatype)
}

// mustAnnounce reports whether to announce a small message instead of sending it eagerly, because its caller waits for
// it and the peer's credit is scarce.
func (l *extendedLink) mustAnnounce(blocking bool, length int) bool {
	return blocking && length <= extended.MaxInline && l.conn.IsCreditScarce()
}

// NeedsTime reports whether the driver must call Begin after it sent a message to a peer with a short header. If not,
// the time of the last event is good enough: nobody observes it, and a tick that sets the message's time is due soon.
func (e *Core) NeedsTime(peer int) bool {
	l := e.peers.at(peer).extended
	return e.observes(l.p) || l.needsTick(l.maxRTO)
}

// MaySendNow reports whether SendNow can send a message of length bytes: the peer supports short headers, and no
// Observer is notified of the completion. It needs no lock.
func (e *Core) MaySendNow(peer, tag, length int) bool {
	if uint(peer) >= uint(len(e.peers.list)) || uint64(tag) > math.MaxInt32 {
		return false
	}
	if of := e.peers.limits[peer]; of == nil || of.profile != protocol.Extended {
		return false
	}
	l := e.peers.list[peer].shortLink()
	return l != nil && length <= l.p.uncheckedLen && !e.observes(l.p)
}

// SendNow sends a message with a short header and without a request, if that is possible now. MaySendNow must be true
// for the message. If needsTime, the driver must then call Begin and RecordSendNow.
func (e *Core) SendNow(
	peer, tag int, comm uint32, buf []byte, datatype protocol.Datatype, blocking bool,
) (sent, needsTime bool) {
	l := e.peers.at(peer).extended
	if l.mustAnnounce(blocking, len(buf)) || !l.sendShort(buf, comm, int32(tag), datatype) {
		return false, false
	}
	if l.needsTick(l.maxRTO) {
		return true, true
	}
	l.recordSendNow(buf)
	return true, false
}

// RecordSendNow updates the state and the counters for a message that SendNow has sent.
func (e *Core) RecordSendNow(peer int, buf []byte) { e.peers.at(peer).extended.recordSendNow(buf) }

func (l *extendedLink) recordSendNow(buf []byte) {
	l.recordShortSend(buf)
	l.p.sendsDone++
	l.p.sentBytes += uint64(len(buf))
}

// recordShortSend updates the link for a message that sendShort has sent, and keeps a copy of the payload.
func (l *extendedLink) recordShortSend(buf []byte) {
	p, core := l.p, l.p.e
	l.conn.SentShort(&core.connActions.op)
	messages, bytes := l.conn.ShortsInFlight()
	l.shortPayload.push(buf, bytes-len(buf))
	core.out.Poll = core.out.Poll || messages%acksEvery == 0
	p.sendErr = nil
	p.countSent(protocol.Data, protocol.ShortHeaderLen+len(buf))
	if p.cfg.Recorder != nil {
		l.recordShort(true, &core.connActions.short, buf)
	}
	l.afterShort(false, l.maxRTO)
}

// finishShort completes a request whose message SendShort has sent.
func (e *Core) finishShort(r *Request) {
	r.posted = e.now
	r.p.shortLink().recordShortSend(r.buf)
	r.Status.Phases.Start, r.Status.Phases.Data = r.posted, e.now
	e.finish(r, nil)
}

// acksEvery is the number of messages in flight or queued after which a caller that only sends should poll for
// acknowledgements, because the window would fill up without them.
const acksEvery = 64

// transmitShort transmits a packet with a short header if possible, and reports whether it did.
func (l *extendedLink) transmitShort(header *protocol.ExtHeader, payload []byte) bool {
	if header.Type != protocol.Data || header.Flags&^protocol.FlagPlain != protocol.FlagEager ||
		int(header.Length) != len(payload) {
		return false
	}
	l.sendBatch()
	hdr := &l.p.e.connActions.short
	*hdr = protocol.ShortHeader{
		SessionDigest: protocol.SessionDigest(header.Session,
			header.PeerSession), Number: header.Number, Acknowledged: header.Acknowledged,
		Message: header.Message, Comm: header.Comm, Tag: header.Tag, Datatype: header.Call.Datatype(),
	}
	if !l.memory.SendShort(l.p.rank, hdr, payload) {
		return false
	}
	l.p.countSent(protocol.Data, protocol.ShortHeaderLen+len(payload))
	if l.p.cfg.Recorder != nil {
		l.recordShort(true, hdr, payload)
	}
	return true
}

// shortPayload keeps copies of unacknowledged payload that was sent with short headers. The copies are the last bytes
// of buf before the offset end.
type shortPayload struct {
	buf []byte
	end int
}

// push appends a copy of payload. Of the earlier bytes, only the last n are still needed.
func (k *shortPayload) push(payload []byte, n int) {
	if k.end+len(payload) > len(k.buf) {
		k.ensureSpace(n, len(payload))
	}
	k.end += copy(k.buf[k.end:], payload)
}

// ensureSpace grows or compacts the buffer, so that it can keep the last n bytes and store as many further bytes as the
// parameter more requires. The window bounds its size.
func (k *shortPayload) ensureSpace(n, more int) {
	needed, to := k.buf[k.end-n:k.end], k.buf
	if 2*(n+more) > len(to) {
		to = make([]byte, max(minShortBuf, 4*(n+more)))
	}
	k.buf, k.end = to, copy(to, needed)
}

// minShortBuf is the minimum size, in bytes, of the buffer that keeps payload for retransmission.
const minShortBuf = 4096

// onKept moves a message that was sent with a short header to the outbox, so that the general path can retransmit it.
func (l *extendedLink) onKept(act *extended.Action) {
	begin := l.shortPayload.end - int(act.Offset)
	buf := l.p.e.buffers.get(int(act.Length))
	copy(buf, l.shortPayload.buf[begin:])
	l.outbox.addKept(act.ID, &outbound{buf: buf, ownsBuf: true, used: true, allSent: true, length: act.Length})
}

// receiveShort processes a packet with a short header.
func (l *extendedLink) receiveShort(packet *RxPacket) {
	p, core := l.p, l.p.e
	if l.memory == nil || len(packet.Bytes) < protocol.ShortHeaderLen {
		p.reportDrop(packet, Drop{Reason: state.DropShort})
		return
	}
	if l.tryDeliverShort(packet) {
		return
	}
	p.countReceived(len(packet.Bytes))
	if p.cfg.Recorder != nil {
		l.recordShort(false, &core.connActions.short, packet.Bytes[protocol.ShortHeaderLen:])
	}
	core.connActions.list = l.touchedConn().PacketShort(core.now, &core.connActions.short,
		packet.Bytes[protocol.ShortHeaderLen:], core.connActions.list[:0])
	l.perform(packet)
}

// ReceiveShorts delivers packets with short headers at the beginning of a batch to posted receives, and returns the
// rest of the batch. It may reuse the time of the last event, if that is recent. If the rest is not empty, or if
// NeedsFlush reports true, the driver must then call Begin.
func (e *Core) ReceiveShorts(network int, batch []RxPacket) (rest []RxPacket) {
	if e.observesMemory { // the time matters
		return batch
	}
	for i := range batch {
		packet := &batch[i]
		if packet.Kind != RxShort || e.state == closed {
			return batch[i:]
		}
		p := e.sourcePeer(packet)
		if p == nil || p.cfg.Network.ID != network {
			return batch[i:]
		}
		l := p.extended
		if l == nil || l.memory == nil || len(packet.Bytes) < protocol.ShortHeaderLen || !l.tryDeliverShort(packet) {
			return batch[i:]
		}
	}
	return nil
}

// NeedsFlush reports whether the current event requires a flush.
func (e *Core) NeedsFlush() bool {
	return len(e.pending.touched) > 0 || len(e.endedMessages) > 0 || e.calls.Pending()
}

// tryDeliverShort decodes a packet with a short header, delivers it if it is the expected packet and a receive for its
// message is posted, and reports whether it did.
func (l *extendedLink) tryDeliverShort(packet *RxPacket) bool {
	header, payload := &l.p.e.connActions.short, packet.Bytes[protocol.ShortHeaderLen:]
	header.Decode((*[protocol.ShortHeaderLen]byte)(packet.Bytes))
	request := l.matchShort(header, len(payload))
	if request == nil {
		return false
	}
	l.acceptShort(header, payload, len(payload))
	copy(request.buf, payload)
	l.deliverShort(request, header, len(payload))
	return true
}

// acceptShort updates the link for the expected packet, whose message of length bytes a receive has matched. payload is
// only needed if the peer has a recorder.
func (l *extendedLink) acceptShort(header *protocol.ShortHeader, payload []byte, length int) {
	l.p.burstLen = 0
	l.p.countReceived(protocol.ShortHeaderLen + length)
	if l.p.cfg.Recorder != nil {
		l.recordShort(false, header, payload)
	}
	l.afterShort(l.conn.ReceivedShort(l.p.e.now, header, length), l.ackDelay)
}

// matchShort returns the receive that matches the message of a short header, or nil if none is posted, or if the packet
// is not the expected one.
func (l *extendedLink) matchShort(h *protocol.ShortHeader, length int) *Request {
	if collective.Internal(h.Comm) || !l.conn.ExpectsShort(h, length) {
		return nil
	}
	m := l.p.e.matching.forComm(h.Comm)
	request, ok := m.Match(int32(l.p.rank), int32(h.Tag))
	if !ok {
		return nil
	}
	request.handle = match.Handle{}
	if request.flow != nil { // part of a flow, which needs the general path
		_, _, request.handle, _ = m.Repost(int32(request.peer), request.matchTag(), request, request.order)
		return nil
	}
	return request
}

// deliverShort completes a receive whose message is already in its buffer.
func (l *extendedLink) deliverShort(request *Request, h *protocol.ShortHeader, length int) {
	core, p, s := l.p.e, l.p, &request.Status
	p.recvsDone++
	p.recvBytes += uint64(length)
	s.Peer, s.Bytes, s.Words, s.Datatype, s.Tag, s.Comm = p.rank, int64(length), wordsOf(int64(length)), h.Datatype,
		int(h.Tag), h.Comm
	s.Phases = handshake.Phases{Start: request.posted, Request: core.now, Data: core.now}
	var err error
	if len(request.buf) < length {
		err = &TruncatedError{Source: p.rank, Posted: int64(len(request.buf)), Sent: int64(length)}
	}
	core.finish(request, err)
}

// afterShort marks the peer as touched if it needs a flush, or if no tick is due within the given time. Without a tick,
// the peer's deadline might expire unnoticed.
func (l *extendedLink) afterShort(flush bool, within time.Duration) {
	if flush || l.needsTick(within) {
		l.p.e.touch(l.p)
	}
}

// needsTick reports whether no tick is due within the given time, so that flush must reread the peer's deadline.
func (l *extendedLink) needsTick(within time.Duration) bool {
	return !l.p.isTimed || l.p.e.tickDue > l.p.e.now+within
}
