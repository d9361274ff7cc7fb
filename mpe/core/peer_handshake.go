package core

import (
	"errors"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// handshakeLink connects this rank to a peer that uses the cloudfpga or v0.9 profile. It combines a handshake.Pair,
// which handles one message per direction at a time, with a queue of pending sends.
type handshakeLink struct {
	p    *peer
	pair *handshake.Pair // for events, call touchedPair instead
	// sending and receiving are the requests in the pair, or nil. sendQueue holds the sends posted after sending,
	// oldest first. deferred is the unexpected message whose SEND_REQUEST is deferred in the pair, or nil.
	sending, receiving *Request
	sendQueue          queue[*Request]
	deferred           *inbound
	leftover           leftover
	header             [protocol.HeaderLen]byte // of the current packet
	// dataDatagrams and dataBytes count the datagrams sent as parts of DATA messages, and their bytes. unreachable
	// counts the messages that failed because the peer did not answer in time.
	dataDatagrams, dataBytes, unreachable uint64
	// foreignProfile means that the last dropped packet belonged to the extended profile.
	foreignProfile bool
	// keeper stores the state of the pair, which thus outlives the process; nil disables this. savedState is the state
	// stored last.
	keeper     Keeper
	savedState handshake.SavedState
}

// handshakeActions holds the actions of the current event. All handshake links of an engine share it.
type handshakeActions struct {
	list []handshake.Action
	// one describes the current datagram when the transport passes a batch of datagrams as one packet.
	one RxPacket
	// reposts holds receives that must be queued again, because the messages that they matched turned out not to exist.
	reposts []*Request
}

// setHandshake prepares the link to a peer that uses the cloudfpga or v0.9 profile.
func (p *peer) setHandshake(cfg Peer) {
	l := &handshakeLink{p: p, pair: handshake.New(cfg.Handshake)}
	p.link, p.handshake = l, l
	if l.keeper = cfg.Keeper; l.keeper != nil {
		l.pair.Restore(p.e.now, l.keeper.Restore(p.e.now))
		l.savedState = l.pair.SavedState()
	}
}

// saveState stores the state of the pair before next is transmitted, unless that state is already stored. next is the
// zero Header if no packet is about to be transmitted.
func (l *handshakeLink) saveState(next protocol.Header) {
	if l.keeper == nil {
		return
	}
	if k := l.pair.SavedState().BeforeSending(next); k != l.savedState {
		l.savedState = k
		l.keeper.Keep(&l.savedState)
	}
}

// touchedPair returns the state machine to pass an event to, and marks the peer as touched.
func (l *handshakeLink) touchedPair() *handshake.Pair {
	l.p.e.touch(l.p)
	return l.pair
}

// receive implements link. After a restart of this process, a datagram may belong to a message that the previous
// process cleared; such a message is matched first (Offer).
func (l *handshakeLink) receive(packet *RxPacket) {
	p, core := l.p, l.p.e
	acts := core.pairActions.list[:0]
	switch packet.Kind {
	case RxDatagram:
		p.receivedPacket(packet.Bytes)
		if l.touchedPair().Offer(core.now, packet.Bytes) {
			l.perform(nil) // a posted receive matches the packet
			acts = core.pairActions.list[:0]
		}
		acts = l.touchedPair().Datagram(core.now, packet.Bytes, acts)
	case RxHeader:
		p.receivedPacket(packet.Bytes)
		acts = l.touchedPair().Header(core.now, packet.Bytes, acts)
	case RxPayload:
		p.bytesIn += uint64(len(packet.Bytes))
		p.record(false, len(packet.Bytes), nil, nil)
		acts = l.touchedPair().Payload(core.now, packet.Bytes, acts)
	case RxConnected:
		core.effects.DropQueued(p.rank)
		acts = l.touchedPair().Reconnected(core.now, acts)
	case RxTruncated:
		p.receivedPacket(packet.Bytes)
		acts = append(acts, handshake.Action{Kind: handshake.Drop, Reason: handshake.ReasonLength})
	case RxBroken:
		acts = append(acts, handshake.Action{Kind: handshake.Drop, Reason: handshake.ReasonStream})
	}
	core.pairActions.list = acts
	l.perform(packet)
}

// receiveRun feeds the leading datagrams of rest that continue a message, and sets packet.Bytes to them. The datagrams
// are each bytes long. If the first one does not continue a message, receiveRun is a no-op and reports false.
func (l *handshakeLink) receiveRun(packet *RxPacket, rest []byte, each int) bool {
	e := l.p.e
	n, acts := l.touchedPair().Datagrams(e.now, rest, each, e.pairActions.list[:0])
	e.pairActions.list = acts
	if n == 0 {
		return false
	}
	packet.Bytes = rest[:n]
	l.p.countDatagrams(n, each)
	l.p.record(false, n, packet.Bytes, nil)
	l.perform(packet)
	return true
}

// perform executes the actions of the current event, and any actions that they cause.
func (l *handshakeLink) perform(packet *RxPacket) {
	p, core := l.p, l.p.e
	core.touch(p)
	for i := 0; ; i++ {
		if i == len(core.pairActions.list) {
			// Any action may have deferred a SEND_REQUEST. Reposted receives match it first.
			if len(core.pairActions.reposts) > 0 || !l.announceDeferred() || i == len(core.pairActions.list) {
				break
			}
		}
		switch act := core.pairActions.list[i]; act.Kind {
		case handshake.Transmit:
			l.transmit(act)
		case handshake.TransmitData:
			l.transmitData(act)
		case handshake.Copy:
			l.receiving.store(act)
			if p.canPlace {
				l.placeRest()
			}
		case handshake.SendDone:
			l.sendDone(act)
		case handshake.RecvDone:
			l.recvDone(act)
		case handshake.Repost:
			r := l.receiving
			l.receiving = nil
			if r.detached {
				core.buffers.put(r.buf)
			} else {
				core.pairActions.reposts = append(core.pairActions.reposts, r)
			}
		case handshake.Drop:
			l.foreignProfile = packet != nil && protocol.IsExtended(packet.Bytes)
			p.reportDrop(packet, Drop{Reason: handshakeDrops[act.Reason], Header: act.Header})
		case handshake.Note:
			p.reportEvent(Note{Event: handshakeEvents[act.Event], Header: act.Header, Err: act.Err})
		case handshake.DeadEnd:
			p.onDeadEnd(act.Err)
		}
	}
	l.saveState(protocol.Header{})
	clear(core.pairActions.list) // release payload and requests
	core.pairActions.list = core.pairActions.list[:0]
	for len(core.pairActions.reposts) > 0 { // this may act on another peer
		r := core.pairActions.reposts[0]
		core.pairActions.reposts = append(core.pairActions.reposts[:0], core.pairActions.reposts[1:]...)
		core.matching.repost(r)
		if len(core.pairActions.reposts) == 0 {
			l.perform(nil)
		}
	}
}

// transmit sends a handshake packet. A packet that the network refuses counts as lost, and is retransmitted. transmit
// records the network's error, which may later explain a timeout.
func (l *handshakeLink) transmit(act handshake.Action) {
	l.saveState(act.Header)
	l.p.profile.Put(l.header[:], act.Header)
	l.p.countSent(act.Header.Type, protocol.HeaderLen)
	l.p.record(true, protocol.HeaderLen, l.header[:], nil)
	l.p.sendResult(l.p.e.effects.SendHeader(l.p.rank, l.header[:]))
}

// transmitData sends a DATA message.
func (l *handshakeLink) transmitData(act handshake.Action) {
	l.saveState(act.Header)
	if !l.sending.detached {
		l.leftover = leftover{unanswered: true}
	}
	payload := l.sending.buf
	l.p.profile.Put(l.header[:], act.Header)
	l.p.record(true, l.sentData(len(payload)), l.header[:], payload)
	if at, sent, err := l.p.e.effects.SendData(l.p.rank, act.ID, l.header[:], payload); sent {
		l.dataSent(at, act.ID, err)
	}
}

// sentData counts an outgoing DATA message, and returns its size on the wire.
func (l *handshakeLink) sentData(bytes int) (wire int) {
	p := l.p
	p.countSent(protocol.Data, protocol.HeaderLen+bytes)
	datagrams, wire := uint64(1), protocol.HeaderLen+bytes
	if !p.cfg.Network.Reliable {
		shape, words := &p.cfg.Handshake.Shape, wordsOf(int64(bytes))
		datagrams, wire = uint64(shape.NumDatagrams(words)), protocol.HeaderLen+int(shape.PayloadBytes(words))
	}
	l.dataDatagrams += datagrams
	l.dataBytes += uint64(wire)
	return wire
}

// HeaderSent reports the network's result for a packet that Effects.SendHeader queued. DataSent does the same for a
// DATA message that Effects.SendData did not send at once.
func (e *Core) HeaderSent(peer int, err error) { e.peers.at(peer).sendResult(err) }
func (e *Core) DataSent(peer int, id handshake.ID, err error) {
	e.peers.at(peer).handshake.dataSent(e.now, id, err)
}

// dataSent notes that the network accepted or refused a DATA message at now. The wait for the ACK then begins, unless
// the send ended meanwhile.
func (l *handshakeLink) dataSent(now handshake.Instant, id handshake.ID, err error) {
	l.p.sendResult(err)
	l.p.e.now = now
	if l.sending != nil && l.sending.id == id {
		l.touchedPair().DataSent(now)
	}
}

// store writes payload to its destination, unless the transport has already placed it there.
func (r *Request) store(act handshake.Action) {
	if to := r.buf[act.Offset:]; !same(to, act.Payload) {
		copy(to, act.Payload)
	}
}

// placeRest starts direct placement of the rest of a message in the receive's buffer, if the rest is long enough.
// Otherwise it clears the peer's placement.
func (l *handshakeLink) placeRest() {
	r := l.receiving
	offset, left, ok := l.pair.ExpectedPayload()
	left = min(left, int64(len(r.buf))-offset)
	if ok && left >= minPlacement && !r.detached {
		l.p.setPlacement(r, Placement{Buf: r.buf[offset : offset+left]})
	} else {
		l.p.clearPlacement()
	}
}

func (l *handshakeLink) send(r *Request, _ bool) (coalesced bool) {
	l.cancelLeftSend()
	l.sendQueue.push(r)
	l.nextSend()
	l.perform(nil)
	return false
}

// nextSend hands the next queued send to the pair, unless the pair is busy with one.
func (l *handshakeLink) nextSend() {
	core := l.p.e
	for l.sending == nil {
		request := l.sendQueue.pop()
		if request == nil {
			return
		}
		op := handshake.SendOp{ID: request.id, Words: request.words(), Datatype: request.datatype, Tag: uint8(request.tag)}
		l.sending = request
		acts, err := l.touchedPair().Send(core.now, op, core.pairActions.list)
		core.pairActions.list = acts
		if err != nil {
			l.sending = nil
			core.finish(request, err)
		}
	}
}

// announceDeferred offers the message whose SEND_REQUEST is deferred in an idle pair to receives, and reports whether
// one matched it. While the message waits, another copy of its SEND_REQUEST is the same message (P5).
func (l *handshakeLink) announceDeferred() bool {
	if l.receiving != nil {
		return false
	}
	p, core := l.p, l.p.e
	header, at, ok := l.pair.Deferred()
	old := l.deferred
	if !ok {
		if old != nil { // the request was a duplicate
			core.matching.forComm(old.comm).RemoveUnexpected(old.handle)
			core.matching.inbounds.retire(old)
			l.deferred = nil
		}
		return false
	}
	if old != nil && old.tag == int32(header.Tag) && old.datatype == header.Call.Datatype() {
		return false
	}
	if old != nil { // replaced by another request
		core.matching.forComm(old.comm).RemoveUnexpected(old.handle)
	}
	if l.isForEarlier() {
		return l.discardNext()
	}
	in := core.matching.inbounds.get()
	*in = inbound{source: p.rank, tag: int32(header.Tag), bytes: UnknownLength, datatype: header.Call.Datatype(), p: p}
	in.phases.Start, in.phases.Request = at, at
	l.deferred = in
	if err := core.matching.arrive(in); err != nil {
		l.deferred = nil // the peer retransmits its request
	}
	return l.receiving != nil
}

// matched hands the receive that matches a deferred SEND_REQUEST to the pair, which clears the sender.
func (l *handshakeLink) matched(in *inbound, request *Request) {
	core := l.p.e
	l.deferred = nil
	l.receiving = request
	request.inbound = in
	acts, err := l.touchedPair().Recv(core.now, handshake.RecvOp{
		ID: request.id, Words: request.words(), Datatype: request.datatype, Any: request.anyDatatype, Tag: uint8(in.tag),
	}, core.pairActions.list)
	core.pairActions.list = acts
	if err != nil { // impossible: receiving was nil
		l.receiving = nil
		core.finish(request, err)
	}
}

func (l *handshakeLink) sendDone(act handshake.Action) {
	core, request := l.p.e, l.sending
	l.sending = nil
	request.Status.Phases = act.Phases
	request.Status.Phases.Start = request.posted // the pair only knows when the send left the queue
	l.countUnreachable(act.Err)
	if request.detached {
		core.buffers.put(request.buf)
		l.onLeftSendDone(request, act.Err)
	} else {
		core.finish(request, act.Err)
	}
	l.nextSend()
}

// recvDone completes the receive in the pair. The message of a detached receive becomes an unexpected message, unless
// it is to be dropped.
func (l *handshakeLink) recvDone(act handshake.Action) {
	p, core, request := l.p, l.p.e, l.receiving
	l.receiving = nil
	tag := int(act.Header.Tag)
	if p.noTags() && request.tag != AnyTag {
		tag = int(request.tag)
	}
	request.Status = Status{
		Peer: p.rank, Words: act.Words, Bytes: int64(act.Words) * protocol.WordLen,
		Datatype: act.Header.Call.Datatype(), Tag: tag, Phases: act.Phases,
	}
	// The pair knows only when the SEND_REQUEST arrived, not when the receive was posted.
	request.Status.Phases.Start = request.posted
	l.countUnreachable(act.Err)
	switch {
	case !request.detached:
		l.leftover.unanswered = false
		if act.Err == nil {
			p.recvsDone++
			p.recvBytes += uint64(request.Status.Bytes)
		}
		core.matching.inbounds.retire(request.inbound)
		core.finish(request, act.Err)
	case act.Err == nil && !request.dropsMessage:
		// The receive is detached, so its message is delivered to the next matching receive.
		in := &inbound{
			source: p.rank, tag: int32(act.Header.Tag), bytes: request.Status.Bytes, datatype: request.Status.Datatype,
			buf: request.buf, ownsBuf: true, clearedBytes: int64(len(request.buf)), isComplete: true, matchedBefore: true,
			phases: act.Phases,
		}
		in.highWater = min(in.bytes, in.clearedBytes)
		if err := core.matching.arrive(in); err != nil {
			core.matching.dropMessage(in)
		}
	default:
		core.buffers.put(request.buf)
		if request.dropsMessage {
			p.reportEvent(Note{Event: state.EventDiscarded, Header: act.Header})
		}
	}
}

// countUnreachable counts a message if err shows that it failed because the peer did not answer.
func (l *handshakeLink) countUnreachable(err error) {
	if errors.Is(err, handshake.ErrTimeout) || errors.Is(err, handshake.ErrPartial) {
		l.unreachable++
		l.p.unreachableAt = l.p.e.now
	}
}

func (l *handshakeLink) cancel(r *Request) bool {
	if r.isSend() {
		return l.cancelSend(r)
	}
	return l.cancelRecv(r)
}

// cancelSend cancels a send that is queued, or whose DATA the pair has not begun to send. If the program that posted
// the send no longer exists, the send in the pair continues instead, because a deployed node may wait for its DATA.
func (l *handshakeLink) cancelSend(request *Request) bool {
	core := l.p.e
	if l.sendQueue.remove(func(queued *Request) bool { return queued == request }) {
		return true
	}
	if request != l.sending || core.callerGone && l.detachSend(request) {
		return false
	}
	acts, ok := l.touchedPair().CancelSend(core.now, request.id, core.pairActions.list[:0])
	core.pairActions.list = acts
	if ok {
		l.sending = nil
		l.nextSend()
	}
	l.perform(nil)
	return ok
}

// cancelRecv cancels a receive whose sender is not cleared. If the calling program no longer exists, it also tries to
// revoke the CLEAR_TO_SEND.
func (l *handshakeLink) cancelRecv(r *Request) bool {
	if !l.touchedPair().CancelRecv(r.id) {
		return l.p.e.callerGone && l.revokeRecv(r)
	}
	l.receiving = nil // its SEND_REQUEST is deferred again
	l.perform(nil)
	return true
}

// detach implements link. A copy of the request takes its place in the pair, because the caller may reuse the original.
func (l *handshakeLink) detach(request *Request, keep KeepFunc, drop bool) {
	own := &Request{
		kind: request.kind, peer: request.peer, p: request.p, tag: request.tag, comm: request.comm,
		datatype: request.datatype, anyDatatype: request.anyDatatype,
		buf: l.p.e.buffers.detach(request.buf,
			keep), posted: request.posted, id: request.id, inbound: request.inbound, detached: true, Status: request.Status,
	} // takes r's place in the pair
	switch {
	case request.isSend():
		l.sending = own
		own.dropsMessage = l.p.e.callerGone
		l.touchedPair().DetachSend(l.p.e.now, request.id)
	default:
		l.receiving = own
		if drop {
			l.discardReceiving()
		}
	}
}

// abort implements link. If everything is set, the queue is empty: Drain has already aborted its sends.
func (l *handshakeLink) abort(err error, everything bool) {
	if !everything {
		for r := l.sendQueue.pop(); r != nil; r = l.sendQueue.pop() {
			l.p.e.finish(r, err)
		}
		return
	}
	for _, r := range []*Request{l.sending, l.receiving} {
		if r != nil && !r.detached {
			l.p.e.finish(r, err)
		}
	}
	l.sending, l.receiving = nil, nil
}

func (l *handshakeLink) tick(horizon handshake.Instant) {
	e := l.p.e
	e.pairActions.list = l.touchedPair().Tick(horizon, e.pairActions.list[:0])
	l.perform(nil)
}

func (l *handshakeLink) reconfigure(next *Peer) { l.touchedPair().Reconfigure(&next.Handshake) }

// reset implements Engine.Reset for the peer.
func (l *handshakeLink) reset() {
	l.cancelLeftSend()
	l.leftover = leftover{}
	e := l.p.e
	m := l.touchedPair()
	m.Reset()
	e.pairActions.list = m.Release(e.now, e.pairActions.list[:0])
	l.perform(nil)
}

// deadEnd implements link. The check avoids a non-nil error that contains a nil *handshake.DeadEndError.
func (l *handshakeLink) deadEnd() error {
	if err := l.pair.DeadEnd(); err != nil {
		return err
	}
	return nil
}

func (l *handshakeLink) deadline() (handshake.Instant, bool) { return l.pair.Deadline() }

func (l *handshakeLink) lingerUntil() (handshake.Instant, bool) { return l.pair.LingerUntil() }
