package extended

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Reason is the reason for which an incoming packet was dropped.
type Reason uint8

// Reasons for dropping. The defects of a header come first, in the order of protocol.DefectKind, so that a DefectKind
// converts to a Reason.
const (
	ReasonNone Reason = iota
	// ReasonShort to ReasonChecksum are protocol.DefectShort to protocol.DefectChecksum.
	ReasonShort
	ReasonStartMark
	ReasonEndMark
	ReasonReserved
	ReasonCall
	ReasonType
	ReasonLength
	ReasonChecksum
	// ReasonSourceRank: the source is not the peer of this Conn.
	ReasonSourceRank
	// ReasonDestination: the packet is addressed to another rank.
	ReasonDestination
	// ReasonSession: the packet is for or from another session (E6).
	ReasonSession
	// ReasonWindow: its number is too far beyond the first missing one (E32).
	ReasonWindow
	// ReasonDuplicate: its number was received before (E32).
	ReasonDuplicate
	// ReasonAcknowledged: it acknowledges a packet that was never sent, or the payload of an ACK is invalid.
	ReasonAcknowledged
	// ReasonDirection: a receive call in a packet of the message's sender, or a send call in a packet of its receiver.
	ReasonDirection
	// ReasonCredit: the message is beyond the limits of the peer (E20).
	ReasonCredit
	// ReasonOrder: a predecessor of the message never began and cannot arrive any more (E10).
	ReasonOrder
	// ReasonUnsolicited: DATA of no message that is open and was cleared, or an answer to a message that has not begun.
	ReasonUnsolicited
	// ReasonMismatch: the packet contradicts the first packet of its message: another communicator, tag, datatype or
	// length, or bytes beyond the length.
	ReasonMismatch
	// ReasonStale: an answer that is not needed any more. It does no harm.
	ReasonStale
	// ReasonCode: an ERROR code that section 14 does not define.
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

// Event is an occurrence worth counting that is not an error.
type Event uint8

// Events of Note.
const (
	// Connected: the peer's session is known (E6).
	Connected Event = iota + 1
	// SessionChanged: the peer's session was replaced by another one (E8).
	SessionChanged
	// ClosedByPeer: the peer shuts down (E9).
	ClosedByPeer
	// ProcessEnded: the transport detected the end of the peer's process (E9).
	ProcessEnded
	// Unreachable: the peer was silent for too long (E31, E33).
	Unreachable
	// Retransmitted: the packet Header was retransmitted.
	Retransmitted
	// TimedOut: the time-out of the packet Header expired (E30).
	TimedOut
	// Spurious: a time-out expired for a packet that was merely late (E30).
	Spurious
	// LossDetected: the packet Header was found lost, by acknowledgements of later packets (E29).
	LossDetected
	// WindowFull: packets wait because the window is full.
	WindowFull
	// CreditExhausted: messages wait for message credit (E21).
	CreditExhausted
	// EagerExhausted: message ID is sent by rendezvous for lack of eager credit (E21).
	EagerExhausted
	// Refused: a message of the peer, of Length bytes, is too long (E17).
	Refused
	// BlackHole: the path no longer carries packets as long as Header's (E37).
	BlackHole
	numEvents
)

var eventNames = [numEvents]string{
	"", "connected", "session_changed", "closed_by_peer", "process_ended", "peer_unreachable", "retransmitted",
	"timed_out", "spurious_time_out", "loss_detected",
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

// defectReason returns the drop reason of a defective packet. A packet that was defective when it was first examined
// but no longer is was changed in between.
func defectReason(d protocol.Defect) Reason {
	if d.OK() {
		return Reason(protocol.DefectChecksum)
	}
	return Reason(d.Kind)
}
