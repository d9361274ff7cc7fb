package handshake

import "github.com/zrlmpi/zrlmpid/protocol"

// SavedState is the part of a Pair's state that must outlive its process, because a deployed node does not notice that
// the process was replaced. The caller saves it before it transmits the packets of an event, and passes it to Restore
// of the next Pair for the same rank and peer. SavedState values are comparable.
type SavedState struct {
	// In describes the message from the peer that we have not acknowledged yet, and Out the message to the peer that it
	// has not acknowledged yet.
	In, Out SavedMessage
	// HasReceived is set if a message was received. Of the last message received, Call is the call, Size the size in
	// words, Sum the checksum, and Acked the time at which it was acknowledged.
	HasReceived bool
	Call        protocol.Call
	Size, Sum   uint32
	Acked       Instant
	// DeadEnd is set if the peer cannot continue because a message failed. That message had DeadWords words, and we
	// sent it if DeadOnSend is set.
	DeadEnd, DeadOnSend bool
	DeadWords           uint32
	// Rebooted is set if the host has since been rebooted, so that the saved Instants are meaningless.
	Rebooted bool
}

// Progress is the last step that an unacknowledged message has reached.
type Progress uint8

// These are the steps of a message, for both its sender and its receiver. A sender reaches its last step, Cleared, when
// it first transmits DATA. A receiver is at Acknowledged while it transmits the first ACK.
const (
	NoMessage Progress = iota
	Requested
	Cleared
	Acknowledged
)

// SavedMessage is an unacknowledged message.
type SavedMessage struct {
	Progress Progress
	// Call is the sender's call.
	Call protocol.Call
	Tag  uint8
	// Words is the size of the message in words. It is set only in the field Out, and only if Progress is Cleared.
	Words uint32
	// StepTime is the time at which the message reached the step: that of the last SEND_REQUEST or of CLEAR_TO_SEND.
	StepTime Instant
}

// SavedState returns the state to be saved.
func (p *Pair) SavedState() SavedState {
	var state SavedState
	if p.inherited != nil {
		state = p.inherited.saved
	}
	switch r, d := &p.recv, &p.deferred; {
	case r.isActive() && !r.resumed:
		state.In = SavedMessage{Progress: Cleared, Call: r.call, Tag: r.tag, StepTime: r.phases.Clear}
	case d.valid && !p.resuming && d.header.Type == protocol.SendRequest:
		state.In = SavedMessage{Progress: Requested, Call: d.header.Call, Tag: d.header.Tag, StepTime: d.receivedAt}
	}
	switch s := &p.send; {
	case s.state == WaitAck:
		state.Out = SavedMessage{Progress: Cleared, Call: p.sendCall(), Tag: s.op.Tag, Words: s.op.Words,
			StepTime: s.phases.Clear}
	case s.requestsSent > 0:
		state.Out = SavedMessage{Progress: Requested, Call: p.sendCall(), Tag: s.op.Tag, StepTime: s.requestedAt}
	case p.clearPending:
		state.Out = SavedMessage{Progress: Requested, StepTime: p.requestedAt}
	}
	if l := &p.lastReceived; l.valid {
		state.HasReceived, state.Call, state.Size, state.Sum, state.Acked = true, l.call, l.size, l.sum, l.ackedAt
	}
	state.DeadEnd, state.DeadOnSend, state.DeadWords = p.deadEnd.err != nil, p.deadEnd.isSend, 0
	if state.DeadEnd {
		state.DeadWords = causeWords(p.deadEnd.err.Cause)
	}
	return state
}

// BeforeSending returns the state to save before h is transmitted. If h is an ACK, that state informs the next process
// that the ACK may or may not have been sent.
func (k SavedState) BeforeSending(h protocol.Header) SavedState {
	if h.Type == protocol.Ack && k.HasReceived && k.In.Progress == NoMessage {
		k.In = SavedMessage{Progress: Acknowledged, Call: k.Call, Tag: h.Tag, StepTime: k.Acked}
	}
	return k
}

// causeWords returns the size, in words, of the message whose failure led to a dead end. It returns 0 if the size is
// unknown.
func causeWords(cause error) uint32 {
	switch e := cause.(type) { //nolint:errorlint // causes are not wrapped
	case *PartialError:
		return e.Words
	case *TimeoutError:
		return e.Words
	case *RestartError:
		return e.Words
	}
	return 0
}
