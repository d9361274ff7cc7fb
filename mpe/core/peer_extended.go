package core

import (
	"errors"
	"math"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// extendedLink is the link to a peer of the extended profile: an extended.Conn and its messages.
type extendedLink struct {
	p    *peer
	conn *extended.Conn // events go through machine
	// memory is Network.Memory. kept holds the payload sent through it with short headers.
	memory Memory
	kept   keptPayload
	// maxRTO and ackDelay are copied from conn's configuration.
	maxRTO, ackDelay time.Duration
	// discovers means that packets must fit the path MTU.
	discovers bool
	// batchBytes is the amount of payload, in bytes, at which a batch of packets is handed to the transport.
	batchBytes int
	// present means that a connection to the peer was made, and no event since shows that the peer is gone.
	present bool
	outs    outbox
	ins     inbox
	// resting is the number of waiting sends that libraries left to the engine. announced holds the refs of the
	// sends announced in this event.
	resting   int
	announced []uint32
	// unsure holds the sends of the program for which the peer may have no memory. roomWait is the wait of the
	// first such send.
	unsure   []unsureSend
	roomWait roomWait
	// questions are this rank's pending questions to the peer.
	questions []*Question
}

// extendedActions holds the actions of the current event and scratch memory. The extended peers of an
// engine share it.
type extendedActions struct {
	list    []extended.Action
	batch   packetBatch
	discard discardBuffer
	short   protocol.ShortHeader // of the packet being sent; op is its message
	op      extended.SendOp
	// recorded is the full header that a recorder gets in place of a short one.
	recorded [protocol.ExtHeaderLen]byte
}

// setExtended sets up a peer of the extended profile, which carries every message up to a maximum length.
func (p *peer) setExtended(cfg Peer) {
	l := &extendedLink{
		p: p, conn: extended.New(*cfg.Extended), memory: cfg.Network.Memory,
		discovers: cfg.Extended.Discover && cfg.Network.Datagrams,
	}
	l.conn.WakeSends(l.wakeSend)
	timing := l.conn.Config().Timing
	l.maxRTO, l.ackDelay = timing.MaxRTO, timing.AckDelay
	p.link, p.extended, p.profile = l, l, protocol.Extended
	p.longest, l.batchBytes = l.conn.Config().MaxLength, batchBytes
	if cfg.Network.Reliable && l.memory == nil && l.conn.Config().HeaderChecksum {
		l.batchBytes = streamBatchBytes
	}
	p.unlimited = int(min(p.longest, math.MaxInt))
	// Packets are placed one by one.
	p.placed = p.placed && l.conn.Config().MaxPayload >= minPlacement
}

// machine returns the state machine for an event, and marks the peer as touched.
func (l *extendedLink) machine() *extended.Conn {
	l.p.e.touch(l.p)
	return l.conn
}

func (l *extendedLink) receive(a *RxPacket) {
	p, e := l.p, l.p.e
	now, acts := e.at, e.conns.list[:0]
	p.burst = 0
	switch a.Kind {
	case RxConnected:
		l.present = true
		if l.memory != nil {
			l.machine().LongPackets(l.memory.LongPayload(p.rank))
		}
		acts = l.machine().Reconnected(now, acts)
	case RxShort:
		l.receiveShort(a)
		return
	case RxBroken:
		p.dropped(a, Drop{Reason: state.DropStream})
		return
	case RxGone, RxLeft:
		switch job := l.conn.Config().Job; {
		case !l.present && !job, l.deadEnd() != nil: // the peer has closed its session
			return
		case a.Kind == RxLeft:
			acts = l.machine().ProcessClosed(now, acts)
		default:
			acts = l.machine().ProcessEnded(now, acts)
		}
	case RxUnreachable:
		l.present = false
		acts = l.machine().Unreachable(now, string(a.Bytes), acts)
	default: // the machine drops incomplete packets, with a reason
		p.received(a.Bytes)
		p.record(false, len(a.Bytes)+len(a.Rest)+a.Away, a.Bytes, a.Rest)
		switch {
		case a.Away > 0:
			payload := l.fetch(a)
			if payload == nil {
				return
			}
			p.bytesIn += uint64(len(payload))
			acts = l.machine().PacketParts(now, a.Bytes, payload, acts)
		case a.Advertised != 0:
			acts = l.machine().PacketAdvertised(now, a.Bytes, acts)
		case a.Checked:
			header, payload := a.Bytes, a.Rest
			if len(payload) == 0 {
				header, payload = header[:protocol.ExtHeaderLen], header[protocol.ExtHeaderLen:]
			}
			p.bytesIn += uint64(len(a.Rest))
			acts = l.machine().Checked(now, header, payload, acts)
		case len(a.Rest) == 0:
			acts = l.machine().Packet(now, a.Bytes, acts)
		default:
			p.bytesIn += uint64(len(a.Rest))
			acts = l.machine().PacketParts(now, a.Bytes, a.Rest, acts)
		}
	}
	e.conns.list = acts
	l.perform(a)
}

// perform executes the actions of the current event.
func (l *extendedLink) perform(a *RxPacket) {
	p, e := l.p, l.p.e
	e.touch(p)
	for i := range e.conns.list {
		act := &e.conns.list[i]
		switch act.Kind {
		case extended.Transmit:
			l.transmit(act)
		case extended.TransmitAck:
			l.packet(&act.Header, act.Payload)
			l.sendBatch()
		case extended.Buffered:
			l.buffered(act.ID)
		case extended.ClearedToSend:
			onClearToSend(e, l.outs.at(act.ID).req)
		case extended.SendDone:
			// Packets that read the payload are sent first.
			l.sendBatch()
			l.invalidate(act.ID)
			l.sendDone(act)
		case extended.RestingSendsDone:
			l.endRests(act.Err)
		case extended.Open:
			l.opened(act, a)
		case extended.Copy:
			in := l.ins.at(act.Message)
			in.store(act.Offset, act.Payload)
			if r := in.req; r != nil && r.flow != nil {
				arriving(in)
			}
			if p.placed {
				l.place(in)
			}
		case extended.AskLink:
			l.askLink()
		case extended.Question:
			e.Reports.onQuestion(l)
		case extended.Report:
			l.reported(act)
		case extended.Arrived:
			l.arrived(act.Message)
		case extended.Lost:
			l.lost(act)
		case extended.LostRests:
			l.restsLost()
		case extended.Kept:
			l.onKept(act)
		case extended.Drop:
			p.dropped(a, Drop{Reason: extendedDrops[act.Reason], Extended: &act.Header})
		case extended.Note:
			event := extendedEvents[act.Event]
			p.noted(Note{Event: event, Extended: &act.Header})
			if endsSession(event) {
				l.present = l.present && event != state.EventClosedByPeer && event != state.EventProcessEnded
				p.lost(event, unreachableReason(a))
			}
		}
	}
	l.sendBatch()
	for i := range e.conns.list { // release payload; the other fields may stay, which is cheaper
		e.conns.list[i].Payload, e.conns.list[i].Err = nil, nil
	}
	e.conns.list = e.conns.list[:0]
}

// unreachableReason returns the reason in an RxUnreachable, or "" if a is nil or of another kind.
func unreachableReason(a *RxPacket) string {
	if a == nil || a.Kind != RxUnreachable {
		return ""
	}
	return string(a.Bytes)
}

// askLink limits the length of packets to the MTU of the first link.
func (l *extendedLink) askLink() {
	longest := 0
	if l.discovers {
		longest = l.p.e.effects.LongestDatagram(l.p.rank)
	}
	l.machine().LinkLimit(longest)
}

// place starts direct placement of the rest of a long message in the receive's buffer, provided that the
// bytes received so far are contiguous.
func (l *extendedLink) place(in *inbound) {
	end := min(in.bytes, int64(len(in.buf)))
	if in.req != nil && !in.own && in.stored == in.got && end-in.got >= minPlacement &&
		l.conn.Payload() >= minPlacement {
		l.p.expect(in.req, Placement{
			Head: protocol.ExtHeaderLen, Message: in.num.Number(), Offset: uint32(in.got), Buf: in.buf[in.got:end],
		})
	} else {
		l.p.expectNothing()
	}
}

func (l *extendedLink) send(r *Request, blocking bool) (coalesced bool) {
	e := l.p.e
	r.out = l.outs.add(r)
	m := l.machine()
	full := m.Full()
	op := extended.SendOp{
		ID: r.out, Length: int64(len(r.buf)), Comm: r.comm, Tag: uint32(r.tag), Datatype: r.datatype,
		Sync:    r.kind == OpSendSync,
		Partial: r.flow != nil && r.flow.send == r,
	}
	if l.memory != nil && len(r.buf) > m.Payload() { // several packets, which may be longer
		m.LongPackets(l.memory.LongPayload(l.p.rank))
	}
	if full != extended.NotFull && r.message == nil {
		l.unsure = append(l.unsure, unsureSend{r.out, e.at})
	}
	if r.kind == OpSend && r.message == nil && len(r.buf) <= extended.MaxInline {
		op.Announce = blocking && m.Scarce()
		if _, remote := m.Session(); !blocking && full == extended.NotFull && remote != 0 {
			l.buffered(r.out) // a copy takes less memory than a request, which may have to wait
		}
	}
	e.conns.list = m.Send(e.at, op, e.conns.list[:0])
	if n := m.Queued(); n > 0 && n%acksEvery == 0 {
		e.out.Poll = true
	}
	l.perform(nil)
	return !blocking && l.coalesce()
}

// buffered completes the send of an eager message. A copy is kept for retransmissions.
func (l *extendedLink) buffered(id extended.ID) {
	e, o := l.p.e, l.outs.at(id)
	r := o.req
	if r == nil || o.own {
		return
	}
	buf := e.buffers.get(len(o.buf))
	copy(buf, o.buf)
	o.buf, o.own, o.req = buf, true, nil
	r.Status.Phases.Start, r.Status.Phases.Data = r.posted, e.at
	e.finish(r, nil)
}

// sendDone ends a message that the peer has received or never will.
func (l *extendedLink) sendDone(act *extended.Action) {
	p, e, o := l.p, l.p.e, l.outs.at(act.ID)
	err := act.Err
	if errors.Is(err, extended.ErrCanceled) {
		err = ErrCancelled
		if e.state != running {
			err = ErrClosed
		}
	}
	switch r := o.req; {
	case r != nil:
		r.Status.Phases = o.phases
		r.Status.Phases.Start, r.Status.Phases.Ack = r.posted, e.at
		e.finish(r, err)
	case err != nil && !errors.Is(err, ErrCancelled) && !o.isAbort:
		// Its caller has seen the send succeed.
		p.failed++
		e.cfg.Observer.Done(e.rank,
			Status{Peer: p.rank, Send: true, Bytes: o.length, Words: wordsOf(o.length), Tag: int(o.tag)}, err)
	}
	if o.ordering != nil {
		e.calls.Confirmed(o.ordering)
	}
	if o.own {
		e.buffers.put(o.buf)
	}
	l.outs.remove(act.ID)
}

// opened announces a message. If the message is advertised, a is the packet that announces it.
func (l *extendedLink) opened(act *extended.Action, a *RxPacket) {
	p, e := l.p, l.p.e
	in := e.matching.inbounds.get()
	*in = inbound{
		source: p.rank, comm: act.Comm, tag: int32(act.Tag), bytes: act.Length, datatype: act.Datatype,
		p: p, num: act.Message, room: act.Length, eager: act.Eager,
	}
	if act.Advertised {
		in.advertised = a.Advertised
	}
	in.phases.Start, in.phases.Request = e.at, e.at
	l.ins.add(act.Message, in)
	if collective.Internal(in.comm) {
		callEngine{e}.openInternal(p, in)
		return
	}
	if err := e.matching.arrive(in); err != nil {
		// This cannot happen: the limit includes the credit of all peers. The credit is not returned.
		e.matching.refused(in)
	}
	if act.Eager && in.req == nil {
		// The peer's credit bounds this memory.
		in.buf, in.own = e.buffers.get(int(in.bytes)), true
	} else if in.req == nil {
		l.rest(in)
	}
}

// matched hands a message to its matching receive. Its sender is cleared at the end of the event (flush).
func (l *extendedLink) matched(in *inbound, r *Request) {
	e := l.p.e
	e.matching.takeOver(in, r)
	if !in.accepted && !r.waits(in) {
		e.matching.accept(in, r)
	}
	if in.arrived {
		l.ins.remove(in.num)
		e.matching.deliver(in)
	}
}

// accept clears the sender of a matched message.
func (l *extendedLink) accept(in *inbound) {
	p, e := l.p, l.p.e
	if l.get(in) {
		e.conns.list = l.machine().Fetched(e.at, in.num, in.room, e.conns.list[:0])
	} else {
		e.conns.list = l.machine().Accept(e.at, in.num, in.room, e.conns.list[:0])
	}
	l.perform(nil)
	if p.placed && in.got == 0 && in.req != nil { // the requested payload will be placed
		l.place(in)
	}
}

func (l *extendedLink) arrived(m extended.Message) {
	e, in := l.p.e, l.ins.at(m)
	in.arrived = true
	in.phases.Data = e.at
	if in.req != nil {
		l.ins.remove(m)
		e.matching.deliver(in)
	} else if in.accepted { // its receive was detached; the message is complete, and no longer the peer's
		l.ins.remove(m)
		if collective.Internal(in.comm) {
			callEngine{e}.internalArrived(l.p, in)
			return // its credit may not have been returned yet
		}
		in.p = nil
	} else {
		l.rest(in)
	}
}

// lost ends a message that will never be complete.
func (l *extendedLink) lost(act *extended.Action) {
	if act.Ref != 0 {
		l.restLost(act.Message, act.Ref)
		return
	}
	e, in := l.p.e, l.ins.at(act.Message)
	l.ins.remove(act.Message)
	in.p = nil
	if r := in.req; r != nil {
		in.req = nil
		r.Status = in.status()
		if r.p == nil { // finish does not know the peer
			l.p.failed++
		}
		e.finish(r, act.Err)
		return
	}
	e.matching.of(in.comm).RemoveUnexpected(in.handle)
	e.matching.forget(in)
}

// cancelMessage cancels a message, and reports whether the message was removed at once. If not, the peer has to
// answer first, or it is too late.
func (l *extendedLink) cancelMessage(id extended.ID) bool {
	e := l.p.e
	acts, w := l.machine().Cancel(e.at, id, e.conns.list[:0])
	e.conns.list = acts
	l.perform(nil)
	if w != extended.CancelDone {
		return false
	}
	l.outs.remove(id)
	return true
}

// cancel asks the peer to cancel a send that it knows of. It cannot cancel a receive, whose sender is
// already cleared.
func (l *extendedLink) cancel(r *Request) bool { return r.send() && l.cancelMessage(r.out) }

func (l *extendedLink) detach(r *Request, keep Keep, drop bool) {
	e, in := l.p.e, r.in
	switch {
	case r.send():
		l.invalidate(r.out)
		o := l.outs.at(r.out)
		o.req, o.buf, o.own = nil, e.buffers.own(o.buf, keep), true
	case drop:
		in.buf, in.own, in.req = nil, false, nil
		r.in = nil
	default:
		in.buf = e.buffers.own(in.buf[:min(int64(len(in.buf)), in.bytes)], keep)
		in.own, in.req = true, nil
		e.matching.restore(in)
	}
}

func (l *extendedLink) abort(err error, everything bool) {
	if everything {
		l.abortAll(err)
	} else {
		l.abortUnsent(err)
	}
}

// abortUnsent also asks the peer to cancel the sends that no receive has matched.
func (l *extendedLink) abortUnsent(err error) {
	l.cancelRests(err)
	for i := range l.outs.slots {
		if r := l.outs.slots[i].req; r != nil && l.cancel(r) {
			l.p.e.finish(r, err)
		}
	}
}

func (l *extendedLink) abortAll(err error) {
	e := l.p.e
	l.closeSession()
	for i := range l.outs.slots {
		l.invalidate(extended.ID(i + 1))
		if r := l.outs.slots[i].req; r != nil {
			l.outs.slots[i].req = nil
			e.finish(r, err)
		}
	}
	l.endRests(err)
	for in := range l.ins.all {
		if r := in.req; r != nil {
			in.req = nil
			e.finish(r, err)
		}
	}
}

// tick runs the machine at the present time, which its packets carry (E30), not at the horizon.
func (l *extendedLink) tick(handshake.Instant) {
	e := l.p.e
	e.conns.list = l.machine().Tick(e.at, e.conns.list[:0])
	l.perform(nil)
}

// endEvent sends the packets that the current event has queued.
func (l *extendedLink) endEvent() {
	e := l.p.e
	e.conns.list = l.machine().Flush(e.at, e.conns.list[:0])
	l.perform(nil)
	for _, ref := range l.announced {
		l.restSend(ref)
	}
	l.announced = l.announced[:0]
	if len(l.unsure) > 0 {
		l.refuseUnsure()
	}
}

func (l *extendedLink) reconfigure(next *Peer) {
	if next.Extended != nil {
		l.machine().Reconfigure(l.p.e.at, next.Extended)
	}
}

// deadEnd returns the reason why a rank of this rank's job sends nothing more, or nil. Any other peer may
// return after it was lost.
func (l *extendedLink) deadEnd() error {
	left, closed := l.conn.Left()
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

// closeSession notifies the peer that the rank shuts down. Afterwards, the link only answers retransmissions from
// the peer, until lingerUntil.
func (l *extendedLink) closeSession() {
	e := l.p.e
	e.conns.list = l.machine().Close(e.at, e.conns.list[:0])
	l.perform(nil)
}

func (l *extendedLink) lingerUntil() (handshake.Instant, bool) { return l.conn.LingerUntil() }

// The following methods serve collective calls. The other profiles have no communicators.

// sendInternal sends a message of the engine itself. If o is not nil, it is confirmed when the message ends.
func (l *extendedLink) sendInternal(comm, tag uint32, payload []byte, o *collective.Ordering) {
	e := l.p.e
	id := l.outs.addInternal(payload, o)
	e.conns.list = l.machine().Send(e.at, extended.SendOp{ID: id, Length: int64(len(payload)), Comm: comm, Tag: tag},
		e.conns.list[:0])
	l.perform(nil)
}

// abortSend ends a send whose payload was expected piece by piece, but will not arrive.
func (l *extendedLink) abortSend(r *Request) {
	e := l.p.e
	e.conns.list = l.machine().Abort(e.at, r.out, e.conns.list[:0])
	l.perform(nil)
}

// unsent returns the approximate size in bytes of the messages that are not completely sent.
func (l *extendedLink) unsent() (bytes int) {
	for i := range l.outs.slots {
		if o := &l.outs.slots[i]; o.used && !o.out {
			bytes += int(o.length)
		}
	}
	return bytes
}

// retractAborts cancels the reports of failed calls that carry no epoch and have not been sent yet. If such a
// report were sent later, it might end a call of another program.
func (l *extendedLink) retractAborts() {
	for i := range l.outs.slots {
		if o := &l.outs.slots[i]; o.isAbort && collective.Retractable(o.buf) {
			l.cancelMessage(extended.ID(i + 1))
		}
	}
}

// onlyAborts reports whether only reports of failed calls are in flight.
func (l *extendedLink) onlyAborts() bool {
	some := false
	if len(l.outs.kept) > 0 || l.resting > 0 {
		return false
	}
	if l.memory != nil {
		if messages, _ := l.conn.Shorts(); messages > 0 {
			return false
		}
	}
	for i := range l.outs.slots {
		if o := &l.outs.slots[i]; o.used {
			if !o.isAbort {
				return false
			}
			some = true
		}
	}
	for in := range l.ins.all {
		if in.req != nil {
			return false
		}
	}
	return some
}
