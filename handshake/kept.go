package handshake

import "github.com/zrlmpi/zrlmpid/protocol"

// Kept is the part of a Pair's state that must outlive its process, because a deployed node does not notice when the
// process is replaced. The caller saves it before it transmits the packets of an event, and passes it to Restore of the
// next Pair for the same rank and peer. Kept values are comparable.
type Kept struct {
	// In is a message from the peer that we have not acknowledged, and Out a message to the peer that it has not
	// acknowledged.
	In, Out KeptMessage
	// Received is set if a message was received. The last one had this Call, Size in words and checksum Sum, and was
	// acknowledged at Acked.
	Received  bool
	Call      protocol.Call
	Size, Sum uint32
	Acked     Instant
	// DeadEnd is set if the peer cannot continue, because of a message of DeadWords words. The message was ours if Sent
	// is set.
	DeadEnd, Sent bool
	DeadWords     uint32
	// Rebooted is set if the host was rebooted since, so that Instants are meaningless.
	Rebooted bool
}

// Progress is the last step of an unacknowledged message.
type Progress uint8

// Steps of a message, on both sides. The last step of a sender is Cleared, from the first transmission of DATA. The
// step of a receiver is Acknowledged while it transmits the first ACK.
const (
	NoMessage Progress = iota
	Requested
	Cleared
	Acknowledged
)

// KeptMessage is an unacknowledged message.
type KeptMessage struct {
	Progress Progress
	// Call is the sender's call.
	Call protocol.Call
	Tag  uint8
	// Words is the size of the message in words. It is set only in Out, if Progress is Cleared.
	Words uint32
	// At is the time of the last SEND_REQUEST, or of CLEAR_TO_SEND.
	At Instant
}

// Kept returns the state to be saved.
func (p *Pair) Kept() Kept {
	var k Kept
	if p.earlier != nil {
		k = p.earlier.kept
	}
	switch r, d := &p.recv, &p.deferred; {
	case r.active() && !r.resumed:
		k.In = KeptMessage{Progress: Cleared, Call: r.call, Tag: r.tag, At: r.phases.Clear}
	case d.valid && !p.resumes && d.header.Type == protocol.SendRequest:
		k.In = KeptMessage{Progress: Requested, Call: d.header.Call, Tag: d.header.Tag, At: d.at}
	}
	switch s := &p.send; {
	case s.state == WaitAck:
		k.Out = KeptMessage{Progress: Cleared, Call: p.sendCall(), Tag: s.op.Tag, Words: s.op.Words, At: s.phases.Clear}
	case s.requested > 0:
		k.Out = KeptMessage{Progress: Requested, Call: p.sendCall(), Tag: s.op.Tag, At: s.requestedAt}
	case p.clearPending:
		k.Out = KeptMessage{Progress: Requested, At: p.requestedAt}
	}
	if l := &p.last; l.valid {
		k.Received, k.Call, k.Size, k.Sum, k.Acked = true, l.call, l.size, l.sum, l.acked
	}
	k.DeadEnd, k.Sent, k.DeadWords = p.dead.err != nil, p.dead.sent, 0
	if k.DeadEnd {
		k.DeadWords = deadWords(p.dead.err.Cause)
	}
	return k
}

// Before returns the state to be saved before h is transmitted. If h is an ACK and the process ends during the
// transmission, it will be unknown whether the ACK was sent.
func (k Kept) Before(h protocol.Header) Kept {
	if h.Type == protocol.Ack && k.Received && k.In.Progress == NoMessage {
		k.In = KeptMessage{Progress: Acknowledged, Call: k.Call, Tag: h.Tag, At: k.Acked}
	}
	return k
}

// deadWords returns the size of the message that led to a dead end, or 0 if unknown.
func deadWords(cause error) uint32 {
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
