package extended

import (
	"math"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// maxMessages is the maximum distance between the numbers of two open messages, so that the numbers can be compared
// modulo 2³² (E4).
const maxMessages = 1 << 30

// outbound is a message to the peer. It exists from Send to SendDone.
type outbound struct {
	op       SendOp
	postedAt Instant
	number   uint32
	state    State
	// bytesToSend is the number of bytes to send: the whole length of an eager message, otherwise the number that the
	// peer has cleared. bytesSent is the number of bytes sent, and bytesAcked the number acknowledged.
	bytesToSend, bytesSent, bytesAcked int64
	// unackedPackets is the number of unacknowledged DATA packets. allSent is set once the last DATA packet was sent.
	unackedPackets int
	allSent        bool
	isListed       bool // in the list of cleared messages
	// aborted is set by Abort. The peer receives the ERROR only after it has acknowledged all bytes sent before.
	aborted         bool
	retransmissions int
	// readyBytes is the number of bytes of a Partial message that are available for sending so far.
	readyBytes int64
	// prev and next link the list of all messages. nextCleared links the list of messages that the peer has cleared.
	prev, next, nextCleared *outbound
}

// sending is the sending half of a Conn. It lists the messages in the order of Send; messages that have begun precede
// the queued ones.
type sending struct {
	*common
	first, last       *outbound
	queued            *outbound // the first message that has not begun
	eager             *outbound // the eager message with DATA left to send, or nil
	cleared           *outbound // the first cleared message with DATA left to send
	clearedLast       *outbound
	byID              index[ID, *outbound]     // all except newest
	newest            *outbound                // the last message passed to Send; nil once it is done
	byNumber          index[uint32, *outbound] // announced messages that are not done
	count, begunSends int32
	number            uint32  // number of the next message
	messageLimit      uint32  // number of the first message that may not be sent yet (E20)
	eagerLimit        uint32  // eager bytes that may be sent in the session
	eagerSent         uint32  // eager bytes sent in the session so far
	exhaustedNoted    bool    // CreditExhausted was noted
	creditWanted      bool    // the caller waits for the peer's limits
	initialCredit     uint32  // the first message credit received in the session, or 0 before that
	confirmedAt       Instant // time before the peer sent its last ACK that covered every message begun
	free              *outbound
	resting           *resting                           // nil if sends cannot rest
	restoreSend       func(ref uint32) (SendOp, Instant) // set by SetWakeSend
}

// reset begins a new session. The queued messages are kept, so that they are sent in it.
func (s *sending) reset() {
	s.eager, s.cleared, s.clearedLast = nil, nil, nil
	s.byNumber = index[uint32, *outbound]{}
	s.number, s.messageLimit = s.cfg.firstMessage, s.cfg.firstMessage
	s.eagerLimit, s.eagerSent, s.exhaustedNoted, s.initialCredit, s.confirmedAt = 0, 0, false, 0, 0
}

// Send queues a message, which Flush sends as soon as session, credit and window allow.
func (c *Conn) Send(now Instant, op SendOp, acts []Action) []Action {
	send := &c.sends
	if op.Length < 0 || op.Length > math.MaxUint32 || op.Tag > protocol.MaxExtTag || send.find(op.ID) != nil {
		return send.invalid(op.ID, acts)
	}
	c.changed = true
	message := send.allocate()
	message.op.ID, message.op.Length, message.op.Comm, message.op.Tag, message.op.Datatype, message.op.Sync = op.ID,
		op.Length, op.Comm, op.Tag,
		op.Datatype, op.Sync
	message.op.Partial, message.op.Announce = op.Partial, op.Announce
	message.postedAt, message.state = now, Queued
	message.prev = send.last
	if send.last == nil {
		send.first = message
	} else {
		send.last.next = message
	}
	send.last = message
	if send.queued == nil {
		send.queued = message
	}
	send.count++
	if last := send.newest; last != nil {
		send.byID.put(last.op.ID, last)
	}
	send.newest = message
	if c.peerGone != 0 {
		c.acts = acts
		e := c.sessionEnd(now, c.peerGone)
		send.finish(message, e.messageError(send.describeWait(message)))
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
	s.free, m.next = m.next, nil
	return m
}

// insert inserts a message in front of the queued ones.
func (s *sending) insert(message *outbound) {
	message.next = s.queued
	if message.next == nil {
		message.prev, s.last = s.last, message
	} else {
		message.prev, message.next.prev = message.next.prev, message
	}
	if message.prev == nil {
		s.first = message
	} else {
		message.prev.next = message
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

// invalid rejects a send by a SendDone action, so that callers of Send handle only one kind of failure.
func (s *sending) invalid(id ID, acts []Action) []Action {
	s.acts = acts
	a := s.nextAction()
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
	message := c.sends.find(id)
	if message == nil {
		return acts, CancelTooLate
	}
	switch message.state {
	case Queued:
		c.sends.unlink(message)
		return acts, CancelDone
	case WaitClear:
		message.state = Canceling
		c.controls.push(control{
			kind: protocol.Error, call: message.op.Datatype.SendCall(), message: message.number, code: protocol.CodeCancel,
		})
		return acts, CancelRequested
	case Canceling:
		return acts, CancelRequested
	}
	return acts, CancelTooLate
}

// unlink removes a message from the list of all messages and from the indexes, and recycles it.
func (s *sending) unlink(message *outbound) {
	if message == s.newest {
		s.newest = nil
	} else {
		s.byID.remove(message.op.ID)
	}
	if message.state != Queued {
		s.begunSends--
		if message.state != Eager {
			s.byNumber.remove(message.number)
		}
	}
	if message == s.queued {
		s.queued = message.next
	}
	if message.prev == nil {
		s.first = message.next
	} else {
		message.prev.next = message.next
	}
	if message.next == nil {
		s.last = message.prev
	} else {
		message.next.prev = message.prev
	}
	s.count--
	*message = outbound{}
	message.next, s.free = s.free, message
}

// finish completes a message: it reports SendDone with err, and recycles the message.
func (s *sending) finish(m *outbound, err error) {
	a := s.nextAction()
	a.Kind = SendDone
	a.ID, a.Length, a.Err = m.op.ID, m.bytesAcked, err
	s.unlink(m)
}

// finishIfAcked completes a message if all of it has been sent and acknowledged.
func (s *sending) finishIfAcked(message *outbound) {
	switch {
	case !message.allSent || message.unackedPackets > 0:
	case message.aborted:
		s.endAborted(message)
	default:
		s.finish(message, nil)
	}
}

// onClear handles a CLEAR_TO_SEND (E12).
func (s *sending) onClear(header *protocol.ExtHeader) Reason {
	switch {
	case !header.Call.IsRecv():
		return ReasonDirection
	case int32(header.Message-s.number) >= 0:
		return ReasonUnsolicited
	}
	message := s.findAnnounced(header)
	switch {
	case message == nil || message.state != WaitClear && message.state != Canceling:
		return ReasonStale
	case int64(header.Length) > message.op.Length:
		return ReasonMismatch
	}
	message.state, message.bytesToSend = Sending, int64(header.Length)
	switch {
	case message.bytesToSend == 0: // the message is complete, even if its payload will never be available
		message.allSent, message.aborted = true, false
		s.finishIfAcked(message)
	case message.aborted:
		s.truncate(message)
	case message.op.Partial:
		a := s.nextAction()
		a.Kind, a.ID = ClearedToSend, message.op.ID
		if message.sendableBytes() > 0 {
			s.listCleared(message)
		}
	default:
		s.listCleared(message)
	}
	return ReasonNone
}

// onRefusal handles an ERROR by which the peer refuses a message. If err is nil, the peer refuses it as too long (E17);
// otherwise, as canceled (E16).
func (s *sending) onRefusal(now Instant, header *protocol.ExtHeader, err error) Reason {
	switch {
	case !header.Call.IsRecv():
		return ReasonDirection
	case int32(header.Message-s.number) >= 0:
		return ReasonUnsolicited
	}
	message := s.findAnnounced(header)
	switch {
	case message == nil || message.state != Canceling && (err != nil || message.state != WaitClear):
		return ReasonStale
	}
	if err == nil {
		err = &RemoteError{Wait: s.describeWait(message), Elapsed: now - message.postedAt}
	}
	s.finish(message, err)
	return ReasonNone
}

// failMessages ends the messages that precede the message until in the list. If until is nil, it ends all messages.
func (s *sending) failMessages(e *sessionEnd, until *outbound) {
	for m := s.first; m != until; {
		next := m.next
		s.finish(m, e.messageError(s.describeWait(m)))
		m = next
	}
}

func (s *sending) describeWait(m *outbound) Wait {
	return Wait{
		ID: m.op.ID, State: m.state, Local: s.cfg.Local, Remote: s.cfg.Remote, Since: m.postedAt,
		Length: m.op.Length, BytesDone: m.bytesAcked, Retransmissions: m.retransmissions,
	}
}

// hasCredit reports whether the peer's credit allows the next message to begin (E20).
func (s *sending) hasCredit() bool { return int32(s.messageLimit-s.number) > 0 }

// canSendEagerly reports whether a message is sent without waiting for CLEAR_TO_SEND if it begins now (E11).
func (s *sending) canSendEagerly(m *outbound) bool {
	return s.mayBeEager(m) && m.op.Length <= int64(s.eagerLimit-s.eagerSent)
}

// mayBeEager reports whether a message may be sent eagerly, given enough credit (E11).
func (s *sending) mayBeEager(m *outbound) bool {
	return !m.op.Sync && !m.op.Announce && !m.op.Partial && m.op.Length <= int64(s.cfg.EagerLimit)
}
