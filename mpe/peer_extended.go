package mpe

import (
	"errors"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// sendExtended hands a send to an extended peer's state machine.
func (e *Engine) sendExtended(r *Request) {
	p := r.p
	r.out = p.outs.add(r)
	e.xacts = e.conn(p).Send(e.at, extended.SendOp{
		ID: r.out, Length: int64(len(r.buf)), Comm: r.comm, Tag: uint32(r.tag), Datatype: r.datatype, Sync: r.kind == OpSendSync,
		Partial: r.flow != nil && r.flow.send == r,
	}, e.xacts[:0])
	e.actExtended(p, nil)
}

// actExtended carries out the actions in e.xacts.
func (e *Engine) actExtended(p *peer, a *RxPacket) {
	e.touch(p)
	for i := range e.xacts {
		act := &e.xacts[i]
		switch act.Kind {
		case extended.Transmit:
			e.transmitExtended(p, act)
		case extended.TransmitAck:
			e.packet(p, &act.Header, act.Payload)
			e.flushPackets(p)
		case extended.Buffered:
			e.buffered(p, act.ID)
		case extended.ClearedToSend:
			e.leave(p.outs.at(act.ID).req)
		case extended.SendDone:
			// Packets that read the payload go first.
			e.flushPackets(p)
			p.reclaim(act.ID)
			e.extendedSent(p, act)
		case extended.Open:
			e.opened(p, act, a)
		case extended.Copy:
			in := p.ins.at(act.Message)
			in.store(act.Offset, act.Payload)
			if r := in.req; r != nil && r.flow != nil {
				e.arriving(in)
			}
			if p.lands {
				e.expectExtended(p, in)
			}
		case extended.Arrived:
			e.extendedArrived(p, act.Message)
		case extended.Lost:
			e.lost(p, act)
		case extended.Drop:
			p.extDrops[act.Reason]++
			e.cfg.Observer.DroppedExtended(e.rank, p.rank, a, act)
		case extended.Note:
			p.extEvents[act.Event]++
			e.cfg.Observer.NotedExtended(e.rank, p.rank, act)
		}
	}
	e.flushPackets(p)
	for i := range e.xacts { // lets go of payload; the rest may stay, and costs less so
		e.xacts[i].Payload, e.xacts[i].Err = nil, nil
	}
	e.xacts = e.xacts[:0]
}

// transmitExtended puts a packet into the batch, and what it is about at the
// transport's disposal: its payload, or all of a message that it announces.
func (e *Engine) transmitExtended(p *peer, act *extended.Action) {
	if act.ID == 0 {
		e.packet(p, &act.Header, nil)
		return
	}
	o := p.outs.at(act.ID)
	o.sent(&act.Header, act.Length, e.at)
	pk := e.packet(p, &act.Header, o.buf[act.Offset:act.Offset+act.Length])
	if p.lending != nil && act.Header.Flags&protocol.FlagEager == 0 {
		o.lent, pk.Lent = true, uint64(act.ID)
		if act.Header.Type == protocol.SendRequest && !o.flowing {
			pk.Offer = o.buf
		}
	}
	if e.queuedBytes >= batchBytes {
		e.flushPackets(p)
	}
}

// expectExtended has the rest of a long message land in the receive's buffer, if
// all of it that has been sent so far is there.
func (e *Engine) expectExtended(p *peer, in *inbound) {
	end := min(in.bytes, int64(len(in.buf)))
	if in.req != nil && !in.own && in.stored == in.got && end-in.got >= minPlacement {
		e.landing.expect(p, in.req, protocol.ExtHeaderLen, in.buf[in.got:end])
	} else {
		e.landing.expect(nil, nil, 0, nil)
	}
}

// buffered ends the send of an eager message: what may have to be repeated is
// repeated from a copy.
func (e *Engine) buffered(p *peer, id extended.ID) {
	o := p.outs.at(id)
	r := o.req
	if r == nil || o.own {
		return
	}
	buf := e.buffers.get(len(o.buf))
	copy(buf, o.buf)
	o.buf, o.own, o.req = buf, true, nil
	r.status.Phases.Start, r.status.Phases.Data = r.posted, e.at
	e.finish(r, nil)
}

// extendedSent ends a message that the peer has, or will never have.
func (e *Engine) extendedSent(p *peer, act *extended.Action) {
	o := p.outs.at(act.ID)
	err := act.Err
	if errors.Is(err, extended.ErrCanceled) {
		err = ErrCancelled
		if e.state != running {
			err = ErrClosed
		}
	}
	switch r := o.req; {
	case r != nil:
		r.status.Phases = o.phases
		r.status.Phases.Start, r.status.Phases.Ack = r.posted, e.at
		e.finish(r, err)
	case err != nil && !errors.Is(err, ErrCancelled) && !o.telling:
		// Its caller was told that it is on its way.
		p.failures++
		e.cfg.Observer.Done(e.rank, Status{Peer: p.rank, Send: true, Bytes: o.length, Words: wordsOf(o.length), Tag: int(o.tag)}, err)
	}
	if o.ordering != nil {
		e.confirmed(o.ordering)
	}
	if o.own {
		e.buffers.put(o.buf)
	}
	p.outs.remove(act.ID)
}

// opened announces a message, which a has brought if it is offered.
func (e *Engine) opened(p *peer, act *extended.Action, a *RxPacket) {
	in := e.newInbound()
	*in = inbound{
		source: p.rank, comm: act.Comm, tag: int32(act.Tag), bytes: act.Length, datatype: act.Datatype,
		p: p, num: act.Message, room: act.Length, eager: act.Eager,
	}
	if act.Advertised {
		in.offer = a.Offer
	}
	now := e.at
	in.phases.Start, in.phases.Request = now, now
	p.ins.add(act.Message, in)
	if internal(in.comm) {
		e.openInternal(p, in)
		return
	}
	if err := e.announce(in); err != nil {
		// It cannot be: there is room for all that the peers have credit
		// for. Its credit stays with it.
		e.refused(in)
	}
	if act.Eager && in.req == nil {
		// As long as the peer's credit reaches, and no longer.
		in.buf, in.own = e.buffers.get(int(in.bytes)), true
	}
}

// joinExtended hands a message to the receive that it was matched with. Its
// sender is told at the end of the event (settle).
func (e *Engine) joinExtended(in *inbound, r *Request) {
	e.takeOver(in, r)
	if !in.accepted && !r.waits(in) {
		e.clear(in, r)
	}
	if in.arrived {
		in.p.ins.remove(in.num)
		e.deliver(in)
	}
}

// clear lets the sender of a message that was matched send it.
func (e *Engine) clear(in *inbound, r *Request) {
	in.accepted = true
	in.phases.Clear = e.at
	if !in.own && !in.arrived {
		in.room = min(in.bytes, int64(len(r.buf)))
	}
	e.accepts = append(e.accepts, in)
}

// accept tells the senders of messages that receives were found.
func (e *Engine) accept() {
	for i := 0; i < len(e.accepts); i++ {
		in := e.accepts[i]
		e.accepts[i] = nil
		if p := in.p; p != nil {
			if e.take(p, in) {
				e.xacts = e.conn(p).Fetched(e.at, in.num, in.room, e.xacts[:0])
			} else {
				e.xacts = e.conn(p).Accept(e.at, in.num, in.room, e.xacts[:0])
			}
			e.actExtended(p, nil)
			if p.lands && in.got == 0 && in.req != nil { // what it asks for will land
				e.expectExtended(p, in)
			}
		}
	}
	e.accepts = e.accepts[:0]
}

func (e *Engine) extendedArrived(p *peer, m extended.Message) {
	in := p.ins.at(m)
	in.arrived = true
	in.phases.Data = e.at
	if in.req != nil {
		p.ins.remove(m)
		e.deliver(in)
	} else if in.accepted { // its receive was given up: it is complete, and no longer the peer's
		p.ins.remove(m)
		if internal(in.comm) {
			e.internalArrived(p, in)
			return // its credit may not have been returned yet
		}
		in.p = nil
	}
}

// lost ends a message that will never be complete.
func (e *Engine) lost(p *peer, act *extended.Action) {
	in := p.ins.at(act.Message)
	p.ins.remove(act.Message)
	in.p = nil
	if r := in.req; r != nil {
		in.req = nil
		r.status = in.status()
		if r.p == nil { // finish does not know whose it was
			p.failures++
		}
		e.finish(r, act.Err)
		return
	}
	e.matcher(in.comm).RemoveUnexpected(in.handle)
	e.forget(in)
}

// takeBackExtended is takeBack for a send to an extended peer.
func (e *Engine) takeBackExtended(r *Request, ask bool) bool {
	p := r.p
	acts, w := e.conn(p).Cancel(e.at, r.out, e.xacts[:0])
	e.xacts = acts
	e.actExtended(p, nil)
	if w == extended.CancelDone {
		p.outs.remove(r.out)
		return true
	}
	r.cancel = ask
	return false
}

// failUnsent ends the sends of which the peer knows nothing, and asks for those
// back that no receive has matched.
func (e *Engine) failUnsent(p *peer, err error) {
	for i := range p.outs.slots {
		if r := p.outs.slots[i].req; r != nil && e.takeBackExtended(r, false) {
			e.finish(r, err)
		}
	}
}

// failExtended ends everything that is under way with the peer, and tells it.
func (e *Engine) failExtended(p *peer, err error) {
	e.xacts = e.conn(p).Close(e.xacts[:0])
	e.actExtended(p, nil)
	for i := range p.outs.slots {
		p.reclaim(extended.ID(i + 1))
		if r := p.outs.slots[i].req; r != nil {
			p.outs.slots[i].req = nil
			e.finish(r, err)
		}
	}
	for in := range p.ins.all {
		if r := in.req; r != nil {
			in.req = nil
			e.finish(r, err)
		}
	}
}

const (
	// packetBatch is how many packets are handed to a transport at a time, at most.
	packetBatch = 64
	// batchBytes is the payload in bytes from which they are handed over: the
	// network has something to do while the checksums of the next are computed.
	batchBytes = 256 << 10
)

// packet puts a packet into the batch, and returns it.
func (e *Engine) packet(p *peer, h *protocol.ExtHeader, payload []byte) *Packet {
	if e.queued == len(e.packets) {
		e.flushPackets(p)
	}
	pk := &e.packets[e.queued]
	e.queued++
	protocol.PutExtended(pk.Header[:], h, payload)
	pk.Payload, pk.Offer, pk.Lent = payload, nil, 0
	p.sent(h.Type, protocol.ExtHeaderLen+len(payload))
	e.queuedBytes += len(payload)
	return pk
}

// flushPackets sends the batch. What a network refuses it has lost: packets are
// repeated until they are acknowledged, and the error is kept to explain why
// that does not happen.
func (e *Engine) flushPackets(p *peer) {
	if e.queued == 0 {
		return
	}
	_, err := p.packets.SendPackets(p.rank, e.packets[:e.queued])
	for i := range e.packets[:e.queued] {
		e.packets[i].Payload, e.packets[i].Offer = nil, nil
	}
	e.queued, e.queuedBytes = 0, 0
	p.sendFailed(e, err)
}
