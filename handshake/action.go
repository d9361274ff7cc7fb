package handshake

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// ID names a message for the caller. It is handed back in actions unchanged.
type ID uint64

// ActionKind says what the caller is to do.
type ActionKind uint8

const (
	// Transmit: send the handshake packet Header.
	Transmit ActionKind = iota + 1
	// TransmitData: send Header with the payload of the message ID, fragmented by
	// the Shape of the Config, then call DataSent. Until then no time-out
	// runs for it.
	TransmitData
	// Copy: write Payload at byte Offset of the buffer of the receive ID.
	// The bytes are only valid until the event's caller returns.
	Copy
	// SendDone and RecvDone: the message ID has ended, with Err or without,
	// and its direction of the pair is free. Words is the size that the
	// sender gave.
	SendDone
	RecvDone
	// Repost: the receive ID was given to a message that does not exist,
	// because its SEND_REQUEST was a late duplicate or is withdrawn. Its
	// direction of the pair is free, nothing was stored, and the receive is
	// to be posted again in its old place.
	Repost
	// Drop: something that arrived was not used, for Reason.
	Drop
	// Note: something happened that the caller may want to count or log;
	// nothing needs to be done.
	Note
	// DeadEnd: the peer cannot go on. What waits for it, other than the pair's own messages, which
	// have ended, is to be ended with Err.
	DeadEnd
)

// Action is one thing for the caller to do, in order.
type Action struct {
	Kind    ActionKind
	ID      ID
	Header  protocol.Header
	Offset  int64
	Payload []byte
	Words   uint32
	Reason  Reason
	Event   Event
	Err     error
	Phases  Phases
}

// Phases are the times at which a message passed the steps of the handshake; 0
// where it did not.
type Phases struct {
	// Start is when the operation was handed to the pair.
	Start Instant
	// Request is when the first SEND_REQUEST was sent or seen.
	Request Instant
	// Clear is when the CLEAR_TO_SEND that counted was sent or seen.
	Clear Instant
	// Data is when the DATA that counted had been sent, or had arrived.
	Data Instant
	// Ack is when ACK was sent or seen.
	Ack Instant
	// Retransmissions counts the packets of this message that we retransmitted.
	Retransmissions int
}

// Reason says why something that arrived was not used.
type Reason uint8

// Reasons for dropping. The header's own defects come first, in the order of
// protocol.DefectKind, so that a defect is a reason.
const (
	ReasonNone Reason = iota
	// ReasonShort to ReasonType are protocol.DefectShort to DefectType.
	ReasonShort
	ReasonStartMark
	ReasonEndMark
	ReasonReserved
	ReasonCall
	ReasonType
	// ReasonSourceRank: the header's source rank is not the one that the
	// rank map gives for the source address.
	ReasonSourceRank
	// ReasonDestination: the header is addressed to another rank.
	ReasonDestination
	// ReasonUnknownAddress: the source address is not in the rank map.
	ReasonUnknownAddress
	// ReasonLength: a handshake packet that is not 32 bytes long, or a DATA
	// datagram shorter or longer than its place in the message allows.
	ReasonLength
	// ReasonSize: the size field exceeds the configured maximum.
	ReasonSize
	// ReasonDirection: a receive call in SEND_REQUEST or DATA, or a send
	// call in CLEAR_TO_SEND or ACK.
	ReasonDirection
	// ReasonUnexpectedPayload: payload without a header that no message expects.
	ReasonUnexpectedPayload
	// ReasonUnsolicited: DATA that was not cleared to send.
	ReasonUnsolicited
	// ReasonDuplicate: DATA of a message that was received before.
	ReasonDuplicate
	// ReasonStale: a CLEAR_TO_SEND or ACK that answers nothing.
	ReasonStale
	// ReasonDatatype: an INT packet where FLOAT is expected, or the reverse.
	ReasonDatatype
	// ReasonGap: a continuation datagram after a pause in which the message must be
	// regarded as broken off, or the last one of a message of which others are missing.
	ReasonGap
	// ReasonBarrier: the deployed MPE ignores BARRIER, and so do we.
	ReasonBarrier
	// ReasonStream: a stream that lost its framing.
	ReasonStream
	numReasons
)

var reasonNames = [numReasons]string{
	"none", "short", "start_mark", "end_mark", "reserved", "call", "type",
	"source_rank", "destination", "unknown_address", "length", "size", "direction",
	"unexpected_payload", "unsolicited", "duplicate", "stale", "datatype", "gap", "barrier", "stream",
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

// Event is something worth counting.
type Event uint8

const (
	// Retransmitted: we sent Header's type again after a time-out.
	Retransmitted Event = iota + 1
	// Reacked: a message was acknowledged again because its ACK was lost.
	Reacked
	// Crossed: a SEND_REQUEST crossed with ours and goes first.
	Crossed
	// RequestTakenAsAck: the peer's SEND_REQUEST showed that it has our
	// message.
	RequestTakenAsAck
	// StaleClearUsed: a CLEAR_TO_SEND from before was used for this send.
	StaleClearUsed
	// RequestWasDuplicate: the peer shows by what it sends that an earlier
	// SEND_REQUEST was a late duplicate; it is in no send.
	RequestWasDuplicate
	// ClearWasDuplicate: the peer shows by what it sends that the
	// CLEAR_TO_SEND of this message was a late duplicate; it is in a send.
	ClearWasDuplicate
	// StartedOver: what had arrived of a message was discarded.
	StartedOver
	// RequestRetransmitted: the peer retransmitted its SEND_REQUEST.
	RequestRetransmitted
	// Padding: the peer's DATA carried padding.
	Padding
	// DeliveredDuplicate: a copy of a message, made and delayed by the
	// network until the next one had been cleared, was delivered in that
	// one's place: it equals an earlier one, and the real one has arrived.
	DeliveredDuplicate
	// EarlyData: DATA came sooner after CLEAR_TO_SEND than any before, and is held back until it is
	// clear that no other comes.
	EarlyData
	// EarlyAck: ACK came sooner after DATA than any before, and is held back until it is clear that
	// the peer does not ask for DATA again.
	EarlyAck
	// ClearAfterDone: a deployed peer sent CLEAR_TO_SEND again after its message was reported as done, so
	// DATA may not have arrived.
	ClearAfterDone
	// SecondData: two messages, or too much payload, have come for one CLEAR_TO_SEND. The network has made a copy, and
	// the message that was delivered may be it.
	SecondData
	// RepeatedContent: a message equals one of the last 256 of its sender. That is legal, and all that
	// can be known of a copy that came in the place of the message that was lost.
	RepeatedContent
	// Resumed: a message is received that an earlier process of this rank has
	// cleared.
	Resumed
	// WouldWedge: what has come would wedge a deployed FPGA, or corrupt what it
	// receives; Err says how. Only a stand-in notes it.
	WouldWedge
	// Withdrawn: the peer no longer sends a message that it asked to send, or has
	// revoked its CLEAR_TO_SEND.
	Withdrawn
	numEvents
)

var eventNames = [numEvents]string{
	"", "retransmitted", "reacked", "crossed", "request_taken_as_ack",
	"stale_clear_used", "request_was_duplicate", "clear_was_duplicate", "started_over", "request_retransmitted", "padding", "delivered_duplicate",
	"early_data", "early_ack", "clear_after_done", "second_data", "repeated_content", "resumed", "would_wedge_fpga", "withdrawn",
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
