package extended

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Reason is the reason why an incoming packet was dropped.
type Reason uint8

// Reasons for dropping a packet. The defects of a header come first, in the order of protocol.DefectKind, so that a
// DefectKind can be converted to a Reason.
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
	// ReasonSourceRank: the rank that sent the packet is not the peer of this Conn.
	ReasonSourceRank
	// ReasonDestination: the packet is addressed to a rank other than the local one.
	ReasonDestination
	// ReasonSession: the packet is addressed to or sent from another session (E6).
	ReasonSession
	// ReasonWindow: the packet's number is too far beyond the first missing number (E32).
	ReasonWindow
	// ReasonDuplicate: a packet with this number was received before (E32).
	ReasonDuplicate
	// ReasonAcknowledged: the packet acknowledges a packet that was never sent, or is an ACK with an invalid payload.
	ReasonAcknowledged
	// ReasonDirection: a packet from the sender of a message carries a receive call, or a packet from its receiver a
	// send call.
	ReasonDirection
	// ReasonCredit: the message exceeds the limits sent to the peer (E20).
	ReasonCredit
	// ReasonOrder: an earlier message has not begun, and no missing packet can begin it (E10).
	ReasonOrder
	// ReasonUnsolicited: DATA does not belong to an eager or cleared message with bytes missing, or an answer refers to
	// a message that has not begun.
	ReasonUnsolicited
	// ReasonMismatch: the packet differs from the first packet of its message in communicator, tag, datatype or length,
	// or carries bytes beyond the length.
	ReasonMismatch
	// ReasonStale: the packet is a late but harmless one that is no longer needed.
	ReasonStale
	// ReasonCode: the packet is an ERROR with a code that section 14 does not define.
	ReasonCode
	numReasons
)

// reasonNames and eventNames hold names as in package handshake. Package mpe/core maps reasons and events by them, and
// equal names of both packages mean the same.
var reasonNames = [numReasons]string{
	"none", "short", "start_mark", "end_mark", "reserved", "call", "type", "length", "checksum",
	"source_rank", "destination", "session", "window", "duplicate", "acknowledged", "direction",
	"credit", "order", "unsolicited", "mismatch", "stale", "code",
}

// NumReasons is the number of Reason values. It is the length of arrays indexed by Reason.
const NumReasons = int(numReasons)

// String returns the reason's name in snake case.
func (r Reason) String() string {
	if r < numReasons {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason(%d)", uint8(r))
}

// Event is a noteworthy occurrence that is counted although it is not an error.
type Event uint8

// Events that a Note action reports.
const (
	// Connected: the peer's session is known (E6).
	Connected Event = iota + 1
	// SessionChanged: the peer's session was replaced by another one (E8).
	SessionChanged
	// ClosedByPeer: the peer has shut down (E9).
	ClosedByPeer
	// ProcessEnded: the transport detected the end of the peer's process (E9).
	ProcessEnded
	// Unreachable: the peer was declared unreachable (E31, E33).
	Unreachable
	// Retransmitted: the packet whose header is Header was retransmitted.
	Retransmitted
	// TimedOut: the retransmission timeout of the packet whose header is Header expired (E30).
	TimedOut
	// Spurious: a retransmission timeout expired although the packet was not lost but merely late (E30).
	Spurious
	// LossDetected: the packet whose header is Header is considered lost, because later packets were acknowledged
	// (E29).
	LossDetected
	// WindowFull: packets cannot be sent yet, because too many packets or bytes are in flight.
	WindowFull
	// CreditExhausted: messages cannot be sent yet, because the peer has not granted enough message credit (E21).
	CreditExhausted
	// EagerExhausted: send ID uses rendezvous instead of being eager, because the eager credit does not suffice (E21).
	EagerExhausted
	// Refused: a message of Length bytes from the peer was refused as too long (E17).
	Refused
	// BlackHole: the path no longer carries packets as long as the one whose header is Header (E37).
	BlackHole
	numEvents
)

var eventNames = [numEvents]string{
	"", "connected", "session_changed", "closed_by_peer", "process_ended", "peer_unreachable", "retransmitted",
	"timed_out", "spurious_time_out", "loss_detected",
	"window_full", "credit_exhausted", "eager_exhausted", "refused", "black_hole",
}

// NumEvents is the number of Event values. It is the length of arrays indexed by Event.
const NumEvents = int(numEvents)

// String returns the event's name in snake case.
func (e Event) String() string {
	if e < numEvents {
		return eventNames[e]
	}
	return fmt.Sprintf("event(%d)", uint8(e))
}

// defectReason returns the Reason for dropping a packet with the given defect. If there is no defect, the packet was
// found defective earlier and its memory has changed since; such a packet counts as a checksum error.
func defectReason(d protocol.Defect) Reason {
	if d.OK() {
		return Reason(protocol.DefectChecksum)
	}
	return Reason(d.Kind)
}
