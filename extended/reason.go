package extended

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Reason says why a packet that arrived was not used.
type Reason uint8

// Reasons for dropping. The header's own defects come first, in the order of
// protocol.DefectKind, so that a defect is a reason.
const (
	ReasonNone Reason = iota
	// ReasonShort to ReasonChecksum are protocol.DefectShort to
	// protocol.DefectChecksum.
	ReasonShort
	ReasonStartMark
	ReasonEndMark
	ReasonReserved
	ReasonCall
	ReasonType
	ReasonLength
	ReasonChecksum
	// ReasonSourceRank: another rank's than the one that this Conn is for.
	ReasonSourceRank
	// ReasonDestination: addressed to another rank.
	ReasonDestination
	// ReasonSession: meant for, or from, another session (E6).
	ReasonSession
	// ReasonWindow: a number too far beyond the first that is missing (E32).
	ReasonWindow
	// ReasonDuplicate: a number that has arrived before (E32).
	ReasonDuplicate
	// ReasonAcknowledged: it acknowledges what was never sent, or an ACK's
	// payload is invalid.
	ReasonAcknowledged
	// ReasonDirection: a receive call in a packet of the message's sender, or
	// a send call in one of its receiver.
	ReasonDirection
	// ReasonCredit: a message beyond what the peer was allowed (E20).
	ReasonCredit
	// ReasonOrder: a message whose predecessors cannot come, as an earlier one never
	// began (E10).
	ReasonOrder
	// ReasonUnsolicited: DATA of no message that is open, or was cleared, or an answer to a message that has not begun.
	ReasonUnsolicited
	// ReasonMismatch: a packet that contradicts what its message began with:
	// another communicator, tag, datatype or length, or bytes beyond it.
	ReasonMismatch
	// ReasonStale: an answer to what has ended already. It does no harm.
	ReasonStale
	// ReasonCode: an ERROR of a code that section 14 does not define.
	ReasonCode
	numReasons
)

var reasonNames = [numReasons]string{
	"none", "short", "start_mark", "end_mark", "reserved", "call", "type", "length", "checksum",
	"source_rank", "destination", "session", "window", "duplicate", "acknowledged", "direction",
	"credit", "order", "unsolicited", "mismatch", "stale", "code",
}

// NumReasons is the number of Reasons, for tables indexed by them.
const NumReasons = int(numReasons)

// String returns the reason's name in snake case.
func (r Reason) String() string {
	if r < numReasons {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason(%d)", uint8(r))
}

// Event is something worth counting that is no error.
type Event uint8

// Events of Note.
const (
	// Connected: the peer's session is known (E6).
	Connected Event = iota + 1
	// SessionChanged: the peer's session was replaced by another (E8).
	SessionChanged
	// ClosedByPeer: the peer shuts down (E9).
	ClosedByPeer
	// ProcessEnded: the transport has found that the peer's process has ended (E9).
	ProcessEnded
	// Unreachable: the peer was silent for too long (E31, E33).
	Unreachable
	// Retransmitted: the packet Header was retransmitted.
	Retransmitted
	// TimedOut: the time-out expired for the packet Header (E30).
	TimedOut
	// Spurious: the time-out expired for a packet that was only late (E30).
	Spurious
	// LossDetected: the packet Header was found lost by what was
	// acknowledged after it (E29).
	LossDetected
	// WindowFull: packets wait because as many are in flight as may be.
	WindowFull
	// CreditExhausted: messages wait for message credit (E21).
	CreditExhausted
	// EagerExhausted: the message ID goes by rendezvous for want of eager
	// credit (E21).
	EagerExhausted
	// Refused: a message of the peer, of Length bytes, is too long (E17).
	Refused
	// BlackHole: the path does not carry packets as long as Header's any more (E37).
	BlackHole
	numEvents
)

var eventNames = [numEvents]string{
	"", "connected", "session_changed", "closed_by_peer", "process_ended", "peer_unreachable", "retransmitted", "timed_out", "spurious_time_out", "loss_detected",
	"window_full", "credit_exhausted", "eager_exhausted", "refused", "black_hole",
}

// NumEvents is the number of Events, for tables indexed by them.
const NumEvents = int(numEvents)

// String returns the event's name in snake case.
func (e Event) String() string {
	if e < numEvents {
		return eventNames[e]
	}
	return fmt.Sprintf("event(%d)", uint8(e))
}

// defectReason is why a packet is dropped that has a defect. One that had it when
// it was first examined, and has none now, was changed meanwhile.
func defectReason(d protocol.Defect) Reason {
	if d.OK() {
		return Reason(protocol.DefectChecksum)
	}
	return Reason(d.Kind)
}
