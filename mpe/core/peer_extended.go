package core

import (
	"errors"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// extendedLink connects this rank to a peer that uses the extended profile, by an extended.Conn and its messages.
type extendedLink struct {
	p    *peer
	conn *extended.Conn // for events, call touchedConn instead
	// memory is Network.Memory. shortPayload holds unacknowledged payload sent through memory with short headers.
	memory       Memory
	shortPayload shortPayload
	// maxRTO and ackDelay are copies of the corresponding settings of conn.
	maxRTO, ackDelay time.Duration
	// discovers means that the link discovers the path MTU, and that packets must not exceed it.
	discovers bool
	// batchBytes is the amount of payload, in bytes, at which a batch of packets is handed to the transport.
	batchBytes int
	// connected means that a connection to the peer was made, and that no event has indicated its loss since.
	connected bool
	outbox    outbox
	inbox     inbox
	// resting is the number of sends in state restWaits. announced lists the records, by ref, of those announced in the
	// current event.
	resting   int
	announced []uint32
	// tentative lists the program's sends for which the peer may have no memory. creditWait measures how long the first
	// of them has waited.
	tentative  []tentativeSend
	creditWait creditWait
	// questions holds this rank's pending questions to the peer.
	questions []*Question
}

// extendedActions holds the actions of the current event, and scratch memory that all extended links share.
type extendedActions struct {
	list    []extended.Action
	batch   packetBatch
	discard discardBuffer
	short   protocol.ShortHeader // of the current packet; op is the message being sent
	op      extended.SendOp
	// recorded holds the full header that a recorder receives instead of a short one.
	recorded [protocol.ExtHeaderLen]byte
}

// setExtended prepares the link to a peer that uses the extended profile.
func (p *peer) setExtended(cfg Peer) {
	l := &extendedLink{
		p: p, conn: extended.New(*cfg.Extended), memory: cfg.Network.Memory,
		discovers: cfg.Extended.Discover && cfg.Network.Datagrams,
	}
	l.conn.SetWakeSend(l.wakeSend)
	timing := l.conn.Config().Timing
	l.maxRTO, l.ackDelay = timing.MaxRTO, timing.AckDelay
	p.link, p.extended, p.wireLimits = l, l, extendedLimits(l.conn.Config().MaxLength)
	l.batchBytes = batchBytes
	if cfg.Network.Reliable && l.memory == nil && l.conn.Config().HeaderChecksum {
		l.batchBytes = streamBatchBytes
	}
	// The network places packets one by one, so placement requires that each can be long enough.
	p.canPlace = p.canPlace && l.conn.Config().MaxPayload >= minPlacement
}

// touchedConn returns the state machine to pass an event to, and marks the peer as touched.
func (l *extendedLink) touchedConn() *extended.Conn {
	l.p.e.touch(l.p)
	return l.conn
}

func (l *extendedLink) receive(packet *RxPacket) {
	p, core := l.p, l.p.e
	now, acts := core.now, core.connActions.list[:0]
	p.burstLen = 0
	switch packet.Kind {
	case RxConnected:
		l.connected = true
		if l.memory != nil {
			l.touchedConn().SetFetchPayload(l.memory.LongPayload(p.rank))
		}
		acts = l.touchedConn().Reconnected(now, acts)
	case RxShort:
		l.receiveShort(packet)
		return
	case RxBroken:
		p.reportDrop(packet, Drop{Reason: state.DropStream})
		return
	case RxPeerDied, RxPeerClosed:
		switch job := l.conn.Config().Job; {
		case !l.connected && !job, l.deadEnd() != nil: // the peer has closed its session
			return
		case packet.Kind == RxPeerClosed:
			acts = l.touchedConn().ProcessClosed(now, acts)
		default:
			acts = l.touchedConn().ProcessEnded(now, acts)
		}
	case RxUnreachable:
		l.connected = false
		acts = l.touchedConn().Unreachable(now, string(packet.Bytes), acts)
	default: // the machine drops incomplete packets, with a reason
		p.countReceived(len(packet.Bytes))
		p.record(false, len(packet.Bytes)+len(packet.Tail)+packet.RemoteBytes, packet.Bytes, packet.Tail)
		switch {
		case packet.RemoteBytes > 0:
			payload := l.fetch(packet)
			if payload == nil {
				return
			}
			p.bytesIn += uint64(len(payload))
			acts = l.touchedConn().PacketParts(now, packet.Bytes, payload, acts)
		case packet.Advertised != 0:
			acts = l.touchedConn().PacketAdvertised(now, packet.Bytes, acts)
		case packet.Verified:
			header, payload := packet.Bytes, packet.Tail
			if len(payload) == 0 {
				header, payload = header[:protocol.ExtHeaderLen], header[protocol.ExtHeaderLen:]
			}
			p.bytesIn += uint64(len(packet.Tail))
			acts = l.touchedConn().PacketChecked(now, header, payload, acts)
		case len(packet.Tail) == 0:
			acts = l.touchedConn().Packet(now, packet.Bytes, acts)
		default:
			p.bytesIn += uint64(len(packet.Tail))
			acts = l.touchedConn().PacketParts(now, packet.Bytes, packet.Tail, acts)
		}
	}
	core.connActions.list = acts
	l.perform(packet)
}

// perform executes the actions of the current event.
func (l *extendedLink) perform(packet *RxPacket) {
	p, core := l.p, l.p.e
	core.touch(p)
	for i := range core.connActions.list {
		act := &core.connActions.list[i]
		switch act.Kind {
		case extended.Transmit:
			l.transmit(act)
		case extended.TransmitAck:
			l.addPacket(&act.Header, act.Payload)
			l.sendBatch()
		case extended.Buffered:
			l.onBuffered(act.ID)
		case extended.ClearedToSend:
			onClearToSend(core, l.outbox.find(act.ID).request)
		case extended.SendDone:
			// Packets that refer to the payload must be sent before its buffer is released.
			l.sendBatch()
			l.invalidate(act.ID)
			l.sendDone(act)
		case extended.RestingSendsDone:
			l.endRests(act.Err)
		case extended.Open:
			l.onOpen(act, packet)
		case extended.Copy:
			in := l.inbox.find(act.Message)
			in.store(act.Offset, act.Payload)
			if r := in.recv; r != nil && r.flow != nil {
				onFlowData(in)
			}
			if p.canPlace {
				l.placeRest(in)
			}
		case extended.AskLink:
			l.askLink()
		case extended.Question:
			core.Reports.onQuestion(l)
		case extended.Report:
			l.onReport(act)
		case extended.Arrived:
			l.onArrived(act.Message)
		case extended.Lost:
			l.onLost(act)
		case extended.LostRests:
			l.onRestsLost()
		case extended.Kept:
			l.onKept(act)
		case extended.Drop:
			p.reportDrop(packet, Drop{Reason: extendedDrops[act.Reason], Extended: &act.Header})
		case extended.Note:
			event := extendedEvents[act.Event]
			p.reportEvent(Note{Event: event, Extended: &act.Header})
			if endsSession(event) {
				l.connected = l.connected && event != state.EventClosedByPeer && event != state.EventProcessEnded
				p.onPeerLost(event, unreachableReason(packet))
			}
		}
	}
	l.sendBatch()
	for i := range core.connActions.list { // release payload; the other fields may stay, which is cheaper
		core.connActions.list[i].Payload, core.connActions.list[i].Err = nil, nil
	}
	core.connActions.list = core.connActions.list[:0]
}

// unreachableReason returns the reason that an RxUnreachable packet contains, or "" for any other packet or nil.
func unreachableReason(a *RxPacket) string {
	if a == nil || a.Kind != RxUnreachable {
		return ""
	}
	return string(a.Bytes)
}

// askLink asks the system for the maximum packet length, and limits packets to it, if the link discovers the path MTU.
func (l *extendedLink) askLink() {
	longest := 0
	if l.discovers {
		longest = l.p.e.effects.LongestDatagram(l.p.rank)
	}
	l.touchedConn().LinkLimit(longest)
}

// placeRest starts direct placement of the rest of a long message in the receive's buffer, if the bytes received so far
// are contiguous. Otherwise it clears the peer's placement.
func (l *extendedLink) placeRest(in *inbound) {
	end := min(in.bytes, int64(len(in.buf)))
	if in.recv != nil && !in.ownsBuf && in.storedBytes == in.highWater && end-in.highWater >= minPlacement &&
		l.conn.Payload() >= minPlacement {
		l.p.setPlacement(in.recv, Placement{
			HeaderLen: protocol.ExtHeaderLen, Message: in.id.Number(), Offset: uint32(in.highWater),
			Buf: in.buf[in.highWater:end],
		})
	} else {
		l.p.clearPlacement()
	}
}

func (l *extendedLink) send(request *Request, blocking bool) (coalesced bool) {
	core := l.p.e
	request.sendID = l.outbox.add(request)
	conn := l.touchedConn()
	full := conn.Fullness()
	op := extended.SendOp{
		ID: request.sendID, Length: int64(len(request.buf)), Comm: request.comm, Tag: uint32(request.tag),
		Datatype: request.datatype,
		Sync:     request.kind == OpSendSync,
		Partial:  request.flow != nil && request.flow.send == request,
	}
	if l.memory != nil && len(request.buf) > conn.Payload() { // several packets, which may be longer
		conn.SetFetchPayload(l.memory.LongPayload(l.p.rank))
	}
	if full != extended.NotFull && request.message == nil {
		l.tentative = append(l.tentative, tentativeSend{request.sendID, core.now})
	}
	if request.kind == OpSend && request.message == nil && len(request.buf) <= extended.MaxInline {
		op.Announce = blocking && conn.IsCreditScarce()
		if _, remote := conn.Sessions(); !blocking && full == extended.NotFull && remote != 0 {
			l.onBuffered(request.sendID) // a copy takes less memory than a pending request
		}
	}
	core.connActions.list = conn.Send(core.now, op, core.connActions.list[:0])
	if n := conn.NumQueued(); n > 0 && n%acksEvery == 0 {
		core.out.Poll = true
	}
	l.perform(nil)
	return !blocking && l.coalesce()
}

// onBuffered completes the send of an eager message, and keeps a copy for retransmissions.
func (l *extendedLink) onBuffered(id extended.ID) {
	core, message := l.p.e, l.outbox.find(id)
	request := message.request
	if request == nil || message.ownsBuf {
		return
	}
	buf := core.buffers.get(len(message.buf))
	copy(buf, message.buf)
	message.buf, message.ownsBuf, message.request = buf, true, nil
	request.Status.Phases.Start, request.Status.Phases.Data = request.posted, core.now
	core.finish(request, nil)
}

// sendDone ends an outgoing message. The peer has received it, or will never receive it if act.Err is set.
func (l *extendedLink) sendDone(act *extended.Action) {
	p, core, message := l.p, l.p.e, l.outbox.find(act.ID)
	err := act.Err
	if errors.Is(err, extended.ErrCanceled) {
		err = ErrCancelled
		if core.state != running {
			err = ErrClosed
		}
	}
	switch r := message.request; {
	case r != nil:
		r.Status.Phases = message.phases
		r.Status.Phases.Start, r.Status.Phases.Ack = r.posted, core.now
		core.finish(r, err)
	case err != nil && !errors.Is(err, ErrCancelled) && !message.isAbort:
		// For its caller, the send has already succeeded, so only the Observer is notified of the failure.
		p.failed++
		core.cfg.Observer.Done(core.rank,
			Status{Peer: p.rank, Send: true, Bytes: message.length, Words: wordsOf(message.length), Tag: int(message.tag)}, err)
	}
	if message.ordering != nil {
		core.calls.OrderConfirmed(message.ordering)
	}
	if message.ownsBuf {
		core.buffers.put(message.buf)
	}
	l.outbox.remove(act.ID)
}

// onOpen handles the first packet of a message. If the message is advertised, packet is the announcement.
func (l *extendedLink) onOpen(act *extended.Action, packet *RxPacket) {
	p, core := l.p, l.p.e
	in := core.matching.inbounds.get()
	*in = inbound{
		source: p.rank, comm: act.Comm, tag: int32(act.Tag), bytes: act.Length, datatype: act.Datatype,
		p: p, id: act.Message, clearedBytes: act.Length, eager: act.Eager,
	}
	if act.Advertised {
		in.advertised = packet.Advertised
	}
	in.phases.Start, in.phases.Request = core.now, core.now
	l.inbox.add(act.Message, in)
	if collective.Internal(in.comm) {
		callEngine{core}.openInternal(p, in)
		return
	}
	if err := core.matching.arrive(in); err != nil {
		// This is impossible, because the limit includes the credit of all peers. If it happened, the credit would be
		// lost.
		core.matching.rejectFull(in)
	}
	if act.Eager && in.recv == nil {
		// The peer's credit bounds this memory.
		in.buf, in.ownsBuf = core.buffers.get(int(in.bytes)), true
	} else if in.recv == nil {
		l.restMessage(in)
	}
}

// matched hands a message to the receive that matches it. At the end of the event, flush clears the sender.
func (l *extendedLink) matched(in *inbound, r *Request) {
	core := l.p.e
	core.matching.setDestination(in, r)
	if !in.accepted && !r.mustWait(in) {
		core.matching.accept(in, r)
	}
	if in.isComplete {
		l.inbox.remove(in.id)
		core.matching.deliver(in)
	}
}

// accept clears the sender of a matched message.
func (l *extendedLink) accept(in *inbound) {
	p, e := l.p, l.p.e
	if l.getAdvertised(in) {
		e.connActions.list = l.touchedConn().AcceptFetched(e.now, in.id, in.clearedBytes, e.connActions.list[:0])
	} else {
		e.connActions.list = l.touchedConn().Accept(e.now, in.id, in.clearedBytes, e.connActions.list[:0])
	}
	l.perform(nil)
	if p.canPlace && in.highWater == 0 && in.recv != nil { // place the requested payload
		l.placeRest(in)
	}
}

func (l *extendedLink) onArrived(message extended.Message) {
	core, in := l.p.e, l.inbox.find(message)
	in.isComplete = true
	in.phases.Data = core.now
	if in.recv != nil {
		l.inbox.remove(message)
		core.matching.deliver(in)
	} else if in.accepted { // its receive was detached, and buf holds the complete message
		l.inbox.remove(message)
		if collective.Internal(in.comm) {
			callEngine{core}.internalArrived(l.p, in)
			return // keep in.p: the credit may not have been returned yet
		}
		in.p = nil
	} else {
		l.restMessage(in)
	}
}

// onLost ends an incoming message that will never be complete.
func (l *extendedLink) onLost(act *extended.Action) {
	if act.Ref != 0 {
		l.onRestingLost(act.Message, act.Ref)
		return
	}
	core, in := l.p.e, l.inbox.find(act.Message)
	l.inbox.remove(act.Message)
	in.p = nil
	if request := in.recv; request != nil {
		in.recv = nil
		request.Status = in.status()
		if request.p == nil { // a receive from any source: finish cannot count the failure
			l.p.failed++
		}
		core.finish(request, act.Err)
		return
	}
	core.matching.forComm(in.comm).RemoveUnexpected(in.handle)
	core.matching.dropMessage(in)
}

// cancelMessage cancels an outgoing message, and reports whether it removed the message at once. Otherwise the peer
// must answer first, or it is too late.
func (l *extendedLink) cancelMessage(id extended.ID) bool {
	e := l.p.e
	acts, w := l.touchedConn().Cancel(e.now, id, e.connActions.list[:0])
	e.connActions.list = acts
	l.perform(nil)
	if w != extended.CancelDone {
		return false
	}
	l.outbox.remove(id)
	return true
}

// cancel cancels a send, with the peer's help if the peer knows of it. It cannot cancel a receive that has matched a
// message, because the sender is already cleared.
func (l *extendedLink) cancel(r *Request) bool { return r.isSend() && l.cancelMessage(r.sendID) }

func (l *extendedLink) detach(request *Request, keep KeepFunc, drop bool) {
	core, in := l.p.e, request.inbound
	switch {
	case request.isSend():
		l.invalidate(request.sendID)
		o := l.outbox.find(request.sendID)
		o.request, o.buf, o.ownsBuf = nil, core.buffers.detach(o.buf, keep), true
	case drop:
		in.buf, in.ownsBuf, in.recv = nil, false, nil
		request.inbound = nil
	default:
		in.buf = core.buffers.detach(in.buf[:min(int64(len(in.buf)), in.bytes)], keep)
		in.ownsBuf, in.recv = true, nil
		core.matching.restore(in)
	}
}

func (l *extendedLink) abort(err error, everything bool) {
	if everything {
		l.abortAll(err)
	} else {
		l.abortUnsent(err)
	}
}

// abortUnsent ends the sends that the peer does not know of, and asks the peer to cancel announced sends.
func (l *extendedLink) abortUnsent(err error) {
	l.cancelRests(err)
	for i := range l.outbox.slots {
		if r := l.outbox.slots[i].request; r != nil && l.cancel(r) {
			l.p.e.finish(r, err)
		}
	}
}

func (l *extendedLink) abortAll(err error) {
	core := l.p.e
	l.closeSession()
	for i := range l.outbox.slots {
		l.invalidate(extended.ID(i + 1))
		if r := l.outbox.slots[i].request; r != nil {
			l.outbox.slots[i].request = nil
			core.finish(r, err)
		}
	}
	l.endRests(err)
	for in := range l.inbox.each {
		if r := in.recv; r != nil {
			in.recv = nil
			core.finish(r, err)
		}
	}
}

// tick ignores the horizon and runs the state machine at the present time, because its packets carry that time (E30).
func (l *extendedLink) tick(handshake.Instant) {
	e := l.p.e
	e.connActions.list = l.touchedConn().Tick(e.now, e.connActions.list[:0])
	l.perform(nil)
}

// endEvent sends the packets queued in the current event, lets announced sends rest, and refuses overdue sends.
func (l *extendedLink) endEvent() {
	e := l.p.e
	e.connActions.list = l.touchedConn().Flush(e.now, e.connActions.list[:0])
	l.perform(nil)
	for _, ref := range l.announced {
		l.restSend(ref)
	}
	l.announced = l.announced[:0]
	if len(l.tentative) > 0 {
		l.refuseTentative()
	}
}

func (l *extendedLink) reconfigure(next *Peer) {
	if next.Extended != nil {
		l.touchedConn().Reconfigure(l.p.e.now, next.Extended)
	}
}

// deadEnd returns the reason why a rank of this rank's job sends nothing more, or nil. It is nil for any other peer,
// which may return after it was lost.
func (l *extendedLink) deadEnd() error {
	left, closed := l.conn.PeerGone()
	if !left {
		return nil
	}
	event := state.EventProcessEnded
	if closed {
		event = state.EventClosedByPeer
	}
	return &PeerLostError{Rank: l.p.rank, Event: event, Left: true}
}

func (l *extendedLink) deadline() (handshake.Instant, bool) {
	return l.conn.Deadline()
}

// closeSession notifies the peer that this rank shuts down. Afterwards the link only answers the peer's
// retransmissions, until lingerUntil.
func (l *extendedLink) closeSession() {
	e := l.p.e
	e.connActions.list = l.touchedConn().Close(e.now, e.connActions.list[:0])
	l.perform(nil)
}

func (l *extendedLink) lingerUntil() (handshake.Instant, bool) { return l.conn.LingerUntil() }

// The following methods serve collective calls. The other profiles have no communicators.

// sendInternal sends a message of the engine itself. Its acknowledgement confirms o, if o is not nil.
func (l *extendedLink) sendInternal(comm, tag uint32, payload []byte, o *collective.Ordering) {
	e := l.p.e
	id := l.outbox.addInternal(payload, o)
	e.connActions.list = l.touchedConn().Send(e.now,
		extended.SendOp{ID: id, Length: int64(len(payload)), Comm: comm, Tag: tag},
		e.connActions.list[:0])
	l.perform(nil)
}

// abortSend ends the send of a flow whose remaining payload will not arrive.
func (l *extendedLink) abortSend(r *Request) {
	e := l.p.e
	e.connActions.list = l.touchedConn().Abort(e.now, r.sendID, e.connActions.list[:0])
	l.perform(nil)
}

// unsentBytes returns the total length, in bytes, of the messages that have not been sent completely.
func (l *extendedLink) unsentBytes() (bytes int) {
	for i := range l.outbox.slots {
		if o := &l.outbox.slots[i]; o.used && !o.allSent {
			bytes += int(o.length)
		}
	}
	return bytes
}

// retractAborts cancels unsent aborts that carry no epoch. Sent later, such an abort might end a call of another
// program.
func (l *extendedLink) retractAborts() {
	for i := range l.outbox.slots {
		if o := &l.outbox.slots[i]; o.isAbort && collective.Retractable(o.buf) {
			l.cancelMessage(extended.ID(i + 1))
		}
	}
}

// hasOnlyAborts reports whether aborts, and nothing else, are in flight.
func (l *extendedLink) hasOnlyAborts() (some bool) {
	if len(l.outbox.unslotted) > 0 || l.resting > 0 {
		return false
	}
	if l.memory != nil {
		if messages, _ := l.conn.ShortsInFlight(); messages > 0 {
			return false
		}
	}
	for i := range l.outbox.slots {
		o := &l.outbox.slots[i]
		if o.used && !o.isAbort {
			return false
		}
		some = some || o.used
	}
	for in := range l.inbox.each {
		if in.recv != nil {
			return false
		}
	}
	return some
}
