package mpe

import (
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// act carries out the actions in e.acts, and those that they bring about.
func (e *Engine) act(p *peer, a *RxPacket) {
	e.touch(p)
	for i := 0; ; i++ {
		if i == len(e.acts) {
			// Whatever happened may have deferred a SEND_REQUEST.
			if !e.sawRequest(p) || i == len(e.acts) {
				break
			}
		}
		switch act := e.acts[i]; act.Kind {
		case handshake.Transmit:
			e.transmit(p, act)
		case handshake.TransmitData:
			e.transmitData(p, act)
		case handshake.Copy:
			p.recving.store(act)
			if p.lands {
				e.expectPair(p)
			}
		case handshake.SendDone:
			e.sendDone(p, act)
		case handshake.RecvDone:
			e.recvDone(p, act)
		case handshake.Repost:
			r := p.recving
			p.recving = nil
			if !r.orphan {
				e.reposts = append(e.reposts, r)
			}
		case handshake.Drop:
			e.dropped(p, a, act)
		case handshake.Note:
			p.events[act.Event]++
			e.cfg.Observer.Noted(e.rank, p.rank, act)
		}
	}
	clear(e.acts) // lets go of payload and requests
	e.acts = e.acts[:0]
	for len(e.reposts) > 0 { // which may act on another peer
		r := e.reposts[0]
		e.reposts = append(e.reposts[:0], e.reposts[1:]...)
		e.repost(r)
	}
}

func (e *Engine) dropped(p *peer, a *RxPacket, act handshake.Action) {
	p.drops[act.Reason]++
	e.cfg.Observer.Dropped(e.rank, p.rank, a, act)
}

// store writes payload where it belongs, unless it landed there.
func (r *Request) store(act handshake.Action) {
	if to := r.buf[act.Offset:]; !same(to, act.Payload) {
		copy(to, act.Payload)
	}
}

// expectPair has the rest of a long message land in the receive's buffer.
func (e *Engine) expectPair(p *peer) {
	offset, left, ok := p.pair.Expects()
	r := p.recving
	left = min(left, int64(len(r.buf))-offset)
	if ok && left >= minPlacement && !r.orphan {
		e.landing.expect(p, r, 0, r.buf[offset:offset+left])
	} else {
		e.landing.expect(nil, nil, 0, nil)
	}
}

// nextSend hands the next queued send to the pair, if it is free for one.
func (e *Engine) nextSend(p *peer) {
	for p.sending == nil {
		r := p.sendq.pop()
		if r == nil {
			return
		}
		op := handshake.SendOp{ID: r.id, Words: r.words(), Datatype: r.datatype, Tag: uint8(r.tag)}
		p.sending = r
		acts, err := e.pair(p).Send(e.at, op, e.acts)
		e.acts = acts
		if err != nil {
			p.sending = nil
			e.finish(r, err)
		}
	}
}

// sawRequest announces the message whose SEND_REQUEST is deferred in an idle pair,
// and reports whether a receive has taken it. While it waits for one, the same
// request again is the same message (P5).
func (e *Engine) sawRequest(p *peer) bool {
	if p.recving != nil {
		return false
	}
	h, at, ok := p.pair.Deferred()
	old := p.announced
	if !ok {
		if old != nil { // it was a duplicate
			e.matcher(old.comm).RemoveUnexpected(old.handle)
			e.retire(old)
			p.announced = nil
		}
		return false
	}
	if old != nil && old.tag == int32(h.Tag) && old.datatype == h.Call.Datatype() {
		return false
	}
	if old != nil { // replaced by another
		e.matcher(old.comm).RemoveUnexpected(old.handle)
	}
	in := e.newInbound()
	*in = inbound{source: p.rank, tag: int32(h.Tag), bytes: UnknownLength, datatype: h.Call.Datatype(), p: p}
	in.phases.Start, in.phases.Request = at, at
	p.announced = in
	if err := e.announce(in); err != nil {
		p.announced = nil // the peer will ask again
	}
	return p.recving != nil
}

// joinPair hands the receive that a deferred SEND_REQUEST was matched with to the
// pair, which clears it.
func (e *Engine) joinPair(in *inbound, r *Request) {
	p := in.p
	p.announced = nil
	p.recving = r
	r.in = in
	e.touch(p)
	acts, err := e.pair(p).Recv(e.at, handshake.RecvOp{
		ID: r.id, Words: r.words(), Datatype: r.datatype, Any: r.anyDatatype, Tag: uint8(in.tag),
	}, e.acts)
	e.acts = acts
	if err != nil { // cannot be: p.recving was nil
		p.recving = nil
		e.finish(r, err)
	}
}

func (e *Engine) sendDone(p *peer, act handshake.Action) {
	r := p.sending
	p.sending = nil
	r.status.Phases = act.Phases
	r.status.Phases.Start = r.posted // the pair has had it since its turn came
	p.countGiveUp(act.Err)
	if r.orphan {
		e.buffers.put(r.buf)
	} else {
		e.finish(r, act.Err)
	}
	e.nextSend(p)
}

func (e *Engine) recvDone(p *peer, act handshake.Action) {
	r := p.recving
	p.recving = nil
	tag := int(act.Header.Tag)
	if p.noTags() && r.tag != AnyTag {
		tag = int(r.tag)
	}
	r.status = Status{
		Peer: p.rank, Words: act.Words, Bytes: int64(act.Words) * protocol.WordLen,
		Datatype: act.Header.Call.Datatype(), Tag: tag, Phases: act.Phases,
	}
	// The pair has had the receive only since its SEND_REQUEST was there.
	r.status.Phases.Start = r.posted
	p.countGiveUp(act.Err)
	switch {
	case !r.orphan:
		if act.Err == nil {
			p.recvsDone++
			p.recvBytes += uint64(r.status.Bytes)
		}
		e.retire(r.in)
		e.finish(r, act.Err)
	case act.Err == nil:
		// It arrived for a receive that was given up: it goes to the next
		// one that it fits.
		in := &inbound{
			source: p.rank, tag: int32(act.Header.Tag), bytes: r.status.Bytes, datatype: r.status.Datatype,
			buf: r.buf, own: true, room: int64(len(r.buf)), arrived: true, phases: act.Phases,
		}
		in.got = min(in.bytes, in.room)
		if err := e.announce(in); err != nil {
			e.forget(in)
		}
	default:
		e.buffers.put(r.buf)
	}
}
