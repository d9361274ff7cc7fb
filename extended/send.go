package extended

import (
	"math"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// maxMessages is the maximum distance between the numbers of two open messages. It keeps the numbers comparable (E4).
const maxMessages = 1 << 30

// outbound is a message to the peer. It exists from Send to SendDone.
type outbound struct {
	op     SendOp
	since  Instant
	number uint32
	state  State
	// take is the number of bytes to send: the whole length of an eager message, otherwise the number that the peer has
	// cleared. offset is the number of bytes sent, and acked the number acknowledged.
	take, offset, acked int64
	// flying is the number of unacknowledged DATA packets. out is set once the last DATA packet was sent.
	flying          int
	out             bool
	listed          bool // in the list of cleared messages
	aborted         bool
	retransmissions int
	// ready is the number of available bytes of a Partial message.
	ready int64
	// before and after are the neighbors in the list of all messages, and behind is the next message in the list of
	// cleared messages.
	before, after, behind *outbound
}

// sending is the sending half of a Conn. It lists the messages in the order of Send; those that have begun precede the
// queued ones.
type sending struct {
	*common
	first, last  *outbound
	queued       *outbound // the first message that has not begun
	eager        *outbound // the eager message with DATA left to send, or nil
	cleared      *outbound // the first cleared message with DATA left to send
	clearedLast  *outbound
	byID         index[ID, *outbound]     // all except newest
	newest       *outbound                // the last message passed to Send, or nil if that is done
	byNumber     index[uint32, *outbound] // announced messages that are not done
	count, begun int32
	number       uint32  // number of the next message
	limit        uint32  // number of the first message that may not be sent yet (E20)
	eagerLimit   uint32  // eager bytes that may be sent in the session
	eagerSent    uint32  // eager bytes sent in the session so far
	blocked      bool    // CreditExhausted was noted
	wanted       bool    // the caller waits for the peer's limits
	grant        uint32  // the first message credit received in the session, or 0 before that
	confirmed    Instant // the last ACK that covered every message begun was sent after this time
	free         *outbound
	resting      *resting                           // nil if sends cannot rest
	woken        func(ref uint32) (SendOp, Instant) // set by WakeSends
}

// reset begins a new session. Queued messages are kept.
func (s *sending) reset() {
	s.eager, s.cleared, s.clearedLast = nil, nil, nil
	s.byNumber = index[uint32, *outbound]{}
	s.number, s.limit = s.cfg.firstMessage, s.cfg.firstMessage
	s.eagerLimit, s.eagerSent, s.blocked, s.grant, s.confirmed = 0, 0, false, 0, 0
}

// Send queues a message, which Flush sends as soon as session, credit and window allow.
func (c *Conn) Send(now Instant, op SendOp, acts []Action) []Action {
	s := &c.sends
	if op.Length < 0 || op.Length > math.MaxUint32 || op.Tag > protocol.MaxExtTag || s.find(op.ID) != nil {
		return s.invalid(op.ID, acts)
	}
	c.changed = true
	m := s.allocate()
	m.op.ID, m.op.Length, m.op.Comm, m.op.Tag, m.op.Datatype, m.op.Sync = op.ID, op.Length, op.Comm, op.Tag,
		op.Datatype, op.Sync
	m.op.Partial, m.op.Announce = op.Partial, op.Announce
	m.since, m.state = now, Queued
	m.before = s.last
	if s.last == nil {
		s.first = m
	} else {
		s.last.after = m
	}
	s.last = m
	if s.queued == nil {
		s.queued = m
	}
	s.count++
	if last := s.newest; last != nil {
		s.byID.put(last.op.ID, last)
	}
	s.newest = m
	if c.left != 0 {
		c.acts = acts
		e := c.sessionEnd(now, c.left)
		s.done(m, e.failure(s.wait(m)))
		return c.acts
	}
	return acts
}

// allocate returns a zeroed message.
func (s *sending) allocate() *outbound {
	m := s.free
	if m == nil {
		return new(outbound)
	}
	s.free, m.after = m.after, nil
	return m
}

// insert inserts a message in front of the queued ones.
func (s *sending) insert(m *outbound) {
	m.after = s.queued
	if m.after == nil {
		m.before, s.last = s.last, m
	} else {
		m.before, m.after.before = m.after.before, m
	}
	if m.before == nil {
		s.first = m
	} else {
		m.before.after = m
	}
	s.count++
}

// find returns the pending send with the given ID, or nil.
func (s *sending) find(id ID) *outbound {
	if m := s.newest; m != nil && m.op.ID == id {
		return m
	}
	return s.byID.get(id)
}

func (s *sending) invalid(id ID, acts []Action) []Action {
	s.acts = acts
	a := s.next()
	a.Kind = SendDone
	a.ID, a.Length, a.Err = id, 0, ErrInvalid
	return s.acts
}

// CancelOutcome is the outcome of Cancel.
type CancelOutcome uint8

const (
	// CancelDone: nothing of the message was sent, and no SendDone follows.
	CancelDone CancelOutcome = iota + 1
	// CancelRequested: the peer is asked to agree. SendDone follows, with ErrCanceled if the peer agrees; otherwise the
	// message continues.
	CancelRequested
	// CancelTooLate: the message can no longer be canceled. It continues until SendDone, or is already done.
	CancelTooLate
)

// Cancel cancels a send if possible (E16).
func (c *Conn) Cancel(_ Instant, id ID, acts []Action) ([]Action, CancelOutcome) {
	c.changed = true
	m := c.sends.find(id)
	if m == nil {
		return acts, CancelTooLate
	}
	switch m.state {
	case Queued:
		c.sends.unlink(m)
		return acts, CancelDone
	case WaitClear:
		m.state = Canceling
		c.controls.push(control{
			kind: protocol.Error, call: m.op.Datatype.Send(), message: m.number, code: protocol.CodeCancel,
		})
		return acts, CancelRequested
	case Canceling:
		return acts, CancelRequested
	}
	return acts, CancelTooLate
}

// unlink removes a message from the list of all messages and from the indexes, and recycles it.
func (s *sending) unlink(m *outbound) {
	if m == s.newest {
		s.newest = nil
	} else {
		s.byID.remove(m.op.ID)
	}
	if m.state != Queued {
		s.begun--
		if m.state != Eager {
			s.byNumber.remove(m.number)
		}
	}
	if m == s.queued {
		s.queued = m.after
	}
	if m.before == nil {
		s.first = m.after
	} else {
		m.before.after = m.after
	}
	if m.after == nil {
		s.last = m.before
	} else {
		m.after.before = m.before
	}
	s.count--
	*m = outbound{}
	m.after, s.free = s.free, m
}

// done completes a message: it reports SendDone with err, and recycles the message.
func (s *sending) done(m *outbound, err error) {
	a := s.next()
	a.Kind = SendDone
	a.ID, a.Length, a.Err = m.op.ID, m.acked, err
	s.unlink(m)
}

// doneIfAcked completes a message once all of it was sent and acknowledged.
func (s *sending) doneIfAcked(m *outbound) {
	switch {
	case !m.out || m.flying > 0:
	case m.aborted:
		s.endAborted(m)
	default:
		s.done(m, nil)
	}
}

// onClear handles a CLEAR_TO_SEND (E12).
func (s *sending) onClear(h *protocol.ExtHeader) Reason {
	switch {
	case !h.Call.IsRecv():
		return ReasonDirection
	case int32(h.Message-s.number) >= 0:
		return ReasonUnsolicited
	}
	m := s.announced(h)
	switch {
	case m == nil || m.state != WaitClear && m.state != Canceling:
		return ReasonStale
	case int64(h.Length) > m.op.Length:
		return ReasonMismatch
	}
	m.state, m.take = Sending, int64(h.Length)
	switch {
	case m.take == 0: // the message is complete, even if its payload will never be available
		m.out, m.aborted = true, false
		s.doneIfAcked(m)
	case m.aborted:
		s.truncate(m)
	case m.op.Partial:
		a := s.next()
		a.Kind, a.ID = ClearedToSend, m.op.ID
		if m.there() > 0 {
			s.list(m)
		}
	default:
		s.list(m)
	}
	return ReasonNone
}

// onRefusal handles an ERROR with which the peer refuses a message: canceled (E16), or, if err is nil, too long (E17).
func (s *sending) onRefusal(now Instant, h *protocol.ExtHeader, err error) Reason {
	switch {
	case !h.Call.IsRecv():
		return ReasonDirection
	case int32(h.Message-s.number) >= 0:
		return ReasonUnsolicited
	}
	m := s.announced(h)
	switch {
	case m == nil || m.state != Canceling && (err != nil || m.state != WaitClear):
		return ReasonStale
	}
	if err == nil {
		err = &RemoteError{Wait: s.wait(m), Elapsed: now - m.since}
	}
	s.done(m, err)
	return ReasonNone
}

// end ends all messages in front of until, or all messages if until is nil.
func (s *sending) end(e *sessionEnd, until *outbound) {
	for m := s.first; m != until; {
		next := m.after
		s.done(m, e.failure(s.wait(m)))
		m = next
	}
}

func (s *sending) wait(m *outbound) Wait {
	return Wait{
		ID: m.op.ID, State: m.state, Local: s.cfg.Local, Remote: s.cfg.Remote, Since: m.since,
		Length: m.op.Length, Done: m.acked, Retransmissions: m.retransmissions,
	}
}

// hasCredit reports whether the next message may begin (E20).
func (s *sending) hasCredit() bool { return int32(s.limit-s.number) > 0 }

// eagerly reports whether a message is sent without waiting for CLEAR_TO_SEND if it begins now (E11).
func (s *sending) eagerly(m *outbound) bool {
	return s.short(m) && m.op.Length <= int64(s.eagerLimit-s.eagerSent)
}

func (s *sending) short(m *outbound) bool {
	return !m.op.Sync && !m.op.Announce && !m.op.Partial && m.op.Length <= int64(s.cfg.EagerLimit)
}
