package extended

import (
	"github.com/zrlmpi/zrlmpid/protocol"
)

// inbound is a message of the peer's, from Open until it has been accepted and
// has arrived, or is lost.
type inbound struct {
	number    uint32
	comm, tag uint32
	datatype  protocol.Datatype
	eager     bool
	accepted  bool
	asked     bool // to be withdrawn
	length    int64
	// take is how many bytes are to come, got how many have.
	take, got     int64
	room          int64 // once it is accepted
	since         Instant
	before, after *inbound
}

func (m *inbound) complete() bool { return (m.eager || m.accepted) && m.got == m.take }

// receiving is the receiver's half.
type receiving struct {
	first, last *inbound // in the order of their numbers
	byNumber    index[inbound]
	held        held
	turn        uint32   // number of the message that begins next
	waiting     int      // messages that are accepted and not complete
	asked       []uint32 // numbers of those that the peer withdraws, until Flush

	// matched counts messages for which a receive has matched, or that are no
	// more, and matchedBytes the bytes of those that came eagerly; eager
	// counts those of all that have begun (E20).
	matched, matchedBytes, eager uint32
	// toldLimit and toldEager are what the peer knows of the limits.
	toldLimit, toldEager uint32
	firstMessage         uint32
	free                 *inbound
}

func (r *receiving) reset(first uint32) {
	for m := r.first; m != nil; {
		next := m.after
		*m = inbound{after: r.free}
		r.free = m
		m = next
	}
	r.held.reset()
	r.byNumber.clear()
	*r = receiving{byNumber: r.byNumber, held: r.held, asked: r.asked[:0], free: r.free, turn: first, firstMessage: first}
}

// limits returns what the peer may send (E20). Numbers of messages that are open
// at a time stay comparable (E4).
func (r *receiving) limits(cfg *Config) (messages, eager uint32) {
	messages = r.firstMessage + uint32(cfg.Messages) + r.matched
	if r.first != nil && int32(messages-r.first.number) > maxMessages {
		messages = r.first.number + maxMessages
	}
	return messages, uint32(cfg.EagerBytes) + r.matchedBytes
}

func (r *receiving) told(messages, eager uint32) { r.toldLimit, r.toldEager = messages, eager }

// creditDue reports whether the peer is to be told of its new limits (E22).
func (r *receiving) creditDue(cfg *Config) bool {
	messages, eager := r.limits(cfg)
	return int(messages-r.toldLimit) >= max(cfg.Messages/4, 1) || int(eager-r.toldEager) >= max(cfg.EagerBytes/4, 1)
}

// onRequest takes SEND_REQUEST (E12).
func (c *Conn) onRequest(now Instant, h *protocol.ExtHeader, payload []byte, acts []Action) ([]Action, Reason) {
	r := &c.recvs
	if !h.Call.IsSend() {
		return acts, ReasonDirection
	}
	if len(payload) > 0 || h.Tag > protocol.MaxExtTag {
		return acts, ReasonMismatch
	}
	if h.Message != r.turn {
		return c.hold(h, payload, acts)
	}
	if reason := c.mayBegin(h); reason != ReasonNone {
		return acts, reason
	}
	if int64(h.Length) > c.cfg.MaxLength {
		r.turn++
		r.matched++
		c.controls.push(control{
			kind: protocol.Error, call: h.Call.Counterpart(), message: h.Message, code: protocol.CodeTooLong,
		})
		acts = c.note(Refused, acts)
		acts[len(acts)-1].Length = int64(h.Length)
		return acts, ReasonNone
	}
	_, acts = c.open(now, h, acts)
	return acts, ReasonNone
}

// mayBegin checks that the peer keeps to the limits that it was told, with the
// message whose turn it is.
func (c *Conn) mayBegin(h *protocol.ExtHeader) Reason {
	r := &c.recvs
	messages, eager := r.limits(&c.cfg)
	if int32(h.Message-messages) >= 0 {
		return ReasonCredit
	}
	if h.Type == protocol.Data && h.Length > eager-r.eager {
		return ReasonCredit
	}
	return ReasonNone
}

// open begins a message.
func (c *Conn) open(now Instant, h *protocol.ExtHeader, acts []Action) (*inbound, []Action) {
	r := &c.recvs
	m := r.free
	if m == nil {
		m = new(inbound)
	} else {
		r.free = m.after
	}
	*m = inbound{
		number: h.Message, comm: h.Comm, tag: h.Tag, datatype: h.Call.Datatype(),
		eager: h.Type == protocol.Data, length: int64(h.Length), since: now, before: r.last,
	}
	if m.eager {
		m.take = m.length
		r.eager += h.Length
	}
	if r.last == nil {
		r.first = m
	} else {
		r.last.after = m
	}
	r.last = m
	r.byNumber.put(uint64(m.number), m)
	r.turn++
	c.stats.Opened++
	return m, append(acts, Action{
		Kind: Open, Message: c.message(m), Comm: m.comm, Tag: m.tag, Length: m.length, Datatype: m.datatype, Eager: m.eager,
	})
}

// message is the caller's name of a message.
func (c *Conn) message(m *inbound) Message {
	return Message(uint64(c.session.epoch)<<32 | uint64(m.number))
}

// close forgets a message.
func (r *receiving) close(m *inbound) {
	r.byNumber.remove(uint64(m.number))
	if m.before == nil {
		r.first = m.after
	} else {
		m.before.after = m.after
	}
	if m.after == nil {
		r.last = m.before
	} else {
		m.after.before = m.before
	}
	*m = inbound{after: r.free}
	r.free = m
}

// onData takes DATA, eager (E11) or asked for (E12).
func (c *Conn) onData(now Instant, h *protocol.ExtHeader, payload []byte, acts []Action) ([]Action, Reason) {
	r := &c.recvs
	eager := h.Flags&protocol.FlagEager != 0
	switch end := uint64(h.Offset) + uint64(len(payload)); {
	case !h.Call.IsSend():
		return acts, ReasonDirection
	case end > uint64(h.Length), len(payload) == 0 && h.Length > 0, h.Tag > protocol.MaxExtTag:
		return acts, ReasonMismatch
	}
	m := r.byNumber.get(uint64(h.Message))
	if m != nil && m.complete() {
		return acts, ReasonUnasked
	}
	if m == nil && eager {
		switch d := int32(h.Message - r.turn); {
		case d > 0:
			return c.hold(h, payload, acts)
		case d == 0:
			if reason := c.mayBegin(h); reason != ReasonNone {
				return acts, reason
			}
			m, acts = c.open(now, h, acts)
		}
	}
	switch {
	case m == nil, !m.eager && !m.accepted:
		return acts, ReasonUnasked
	case m.eager != eager, m.comm != h.Comm, m.tag != h.Tag, m.datatype != h.Call.Datatype(), m.length != int64(h.Length),
		int64(h.Offset)+int64(len(payload)) > m.take, m.got+int64(len(payload)) > m.take:
		return acts, ReasonMismatch
	}
	m.got += int64(len(payload))
	if m.accepted {
		// An eager message may be longer than there is room for (E14).
		payload = payload[:max(min(int64(len(payload)), m.room-int64(h.Offset)), 0)]
	}
	if len(payload) > 0 {
		acts = append(acts, Action{Kind: Copy, Message: c.message(m), Offset: int64(h.Offset), Payload: payload})
	}
	return c.arrived(m, acts), ReasonNone
}

// arrived reports a message of which all has come.
func (c *Conn) arrived(m *inbound, acts []Action) []Action {
	if !m.complete() {
		return acts
	}
	c.stats.Arrived++
	acts = append(acts, Action{Kind: Arrived, Message: c.message(m)})
	if m.accepted {
		c.recvs.waiting--
		c.recvs.close(m)
	}
	return acts
}

// Accept says that the caller has matched a message with a receive of room
// bytes. That returns the credit, and clears a message that was announced. A
// message that is no more is no fault.
func (c *Conn) Accept(_ Instant, message Message, room int64, acts []Action) []Action {
	r := &c.recvs
	if uint32(message>>32) != c.session.epoch {
		return acts
	}
	m := r.byNumber.get(uint64(message.Number()))
	if m == nil || m.accepted {
		return acts
	}
	r.matched++
	m.accepted, m.room = true, max(room, 0)
	r.waiting++
	if m.eager {
		r.matchedBytes += uint32(m.length)
		if m.complete() {
			r.waiting--
			r.close(m)
		}
		return acts
	}
	m.take = min(m.room, m.length)
	c.controls.push(control{
		kind: protocol.ClearToSend, call: m.datatype.Recv(), message: m.number, length: uint32(m.take),
	})
	return c.arrived(m, acts)
}

// onWithdraw takes ERROR withdraw (E16).
func (c *Conn) onWithdraw(h *protocol.ExtHeader, acts []Action) ([]Action, Reason) {
	r := &c.recvs
	if !h.Call.IsSend() {
		return acts, ReasonDirection
	}
	if int32(h.Message-r.turn) >= 0 {
		return c.hold(h, nil, acts)
	}
	m := r.byNumber.get(uint64(h.Message))
	if m == nil || m.eager || m.accepted {
		return acts, ReasonStale // CLEAR_TO_SEND is the answer, or was
	}
	if !m.asked {
		m.asked = true
		r.asked = append(r.asked, m.number)
	}
	return acts, ReasonNone
}

// forget answers the withdrawals that were asked for since the last Flush. Only
// now has the caller seen every Open, and so matched what can be.
func (c *Conn) forget(acts []Action) []Action {
	r := &c.recvs
	for _, number := range r.asked {
		m := r.byNumber.get(uint64(number))
		if m == nil || m.accepted {
			continue // CLEAR_TO_SEND is the answer
		}
		c.controls.push(control{
			kind: protocol.Error, call: m.datatype.Recv(), message: number, code: protocol.CodeWithdrawn,
		})
		c.stats.Lost++
		acts = append(acts, Action{Kind: Lost, Message: c.message(m), Err: ErrWithdrawn})
		r.matched++
		r.close(m)
	}
	r.asked = r.asked[:0]
	return acts
}
