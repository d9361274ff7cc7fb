package handshake

import "github.com/zrlmpi/zrlmpid/protocol"

// SavedState is the part of a Pair's state that must outlive its process, because a deployed node does not notice that
// the process was replaced. The caller saves it before it transmits the packets of an event, and passes it to Restore
// of the next Pair for the same rank and peer. SavedState values are comparable.
type SavedState struct {
	// In is a message that we have not acknowledged, and Out a message that the peer has not acknowledged.
	In, Out SavedMessage
	// HasReceived is set if a message was received. Call, Size in words, and the checksum Sum describe the last one; it
	// was acknowledged at Acked.
	HasReceived bool
	Call        protocol.Call
	Size, Sum   uint32
	Acked       Instant
	// DeadEnd is set if the peer cannot continue because of a message of DeadWords words, which we sent if DeadOnSend
	// is set.
	DeadEnd, DeadOnSend bool
	DeadWords           uint32
	// Rebooted is set if the host has since been rebooted, so that the saved Instants are meaningless.
	Rebooted bool
}

// Progress is the last step of an unacknowledged message.
type Progress uint8

// Steps of a message, on both sides. Cleared is the last step of a sender; it begins with the first transmission of
// DATA. A receiver is at Acknowledged while it transmits the first ACK.
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
	// Words is the size of the message in words. It is set only in Out, if Progress is Cleared.
	Words uint32
	// StepTime is the time of the last SEND_REQUEST, or of CLEAR_TO_SEND.
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

// causeWords returns the size of the message that led to a dead end, or 0 if unknown.
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
