package handshake

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// ID identifies a message to the caller. Actions return it unchanged.
type ID uint64

// ActionKind is the kind of an Action.
type ActionKind uint8

const (
	// Transmit: send the handshake packet Header.
	Transmit ActionKind = iota + 1
	// TransmitData: send Header with the payload of message ID, fragmented by the Shape of the Config, then call
	// DataSent. Until then no time-out runs for the message.
	TransmitData
	// Copy: write Payload to byte Offset of the buffer of receive ID. Payload is valid only until the caller of the
	// event returns.
	Copy
	// SendDone and RecvDone: message ID is done, with error Err or nil, and its direction of the pair is free. Words is
	// the size given by the sender.
	SendDone
	RecvDone
	// Repost: receive ID was matched with a message that does not exist, because its SEND_REQUEST was a late duplicate
	// or was withdrawn. Its direction of the pair is free and nothing was stored; post the receive again in its old
	// place.
	Repost
	// Drop: an incoming packet was dropped, for Reason.
	Drop
	// Note: an event to count or log; the caller need not do anything.
	Note
	// DeadEnd: the peer cannot go on. The pair has ended its own messages; end all other operations that wait for the
	// peer with Err.
	DeadEnd
)

// Action is one step for the caller to execute, in order.
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

// Phases are the times at which a message passed the steps of the handshake, or 0 for a step not passed.
type Phases struct {
	// Start is the time when the operation was handed to the pair.
	Start Instant
	// Request is the time when the first SEND_REQUEST was sent or received.
	Request Instant
	// Clear is the time when the CLEAR_TO_SEND that took effect was sent or received.
	Clear Instant
	// Data is the time when the DATA that took effect was completely sent or received.
	Data Instant
	// Ack is the time when ACK was sent or received.
	Ack Instant
	// Retransmissions is the number of packets of this message that we retransmitted.
	Retransmissions int
}

// Reason is the reason for which an incoming packet was dropped.
type Reason uint8

// Reasons for dropping. The defects of a header come first, in the order of protocol.DefectKind, so that a DefectKind
// converts to a Reason.
const (
	ReasonNone Reason = iota
	// ReasonShort to ReasonType are protocol.DefectShort to DefectType.
	ReasonShort
	ReasonStartMark
	ReasonEndMark
	ReasonReserved
	ReasonCall
	ReasonType
	// ReasonSourceRank: the header's source rank is not the rank that the rank map gives for the source address.
	ReasonSourceRank
	// ReasonDestination: the header is addressed to another rank.
	ReasonDestination
	// ReasonUnknownAddress: the source address is not in the rank map.
	ReasonUnknownAddress
	// ReasonLength: a handshake packet that is not 32 bytes long, or a DATA datagram with a wrong length for its place
	// in the message.
	ReasonLength
	// ReasonSize: the size field exceeds the configured maximum.
	ReasonSize
	// ReasonDirection: a receive call in SEND_REQUEST or DATA, or a send call in CLEAR_TO_SEND or ACK.
	ReasonDirection
	// ReasonUnexpectedPayload: payload without a header that no message expects.
	ReasonUnexpectedPayload
	// ReasonUnsolicited: DATA without a CLEAR_TO_SEND.
	ReasonUnsolicited
	// ReasonDuplicate: DATA of a message that was already received.
	ReasonDuplicate
	// ReasonStale: a CLEAR_TO_SEND or ACK that matches no pending message.
	ReasonStale
	// ReasonDatatype: an INT packet where FLOAT is expected, or the reverse.
	ReasonDatatype
	// ReasonGap: a continuation datagram after a pause that ends the message, or the last one of a message of which
	// other datagrams are missing.
	ReasonGap
	// ReasonBarrier: the deployed MPE ignores BARRIER, and so do we.
	ReasonBarrier
	// ReasonStream: a stream with invalid framing.
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

// Event is an occurrence worth counting.
type Event uint8

const (
	// Retransmitted: we retransmitted Header after a time-out.
	Retransmitted Event = iota + 1
	// Reacked: a message was acknowledged again because its ACK was lost.
	Reacked
	// Crossed: a SEND_REQUEST crossed with ours and goes first.
	Crossed
	// RequestTakenAsAck: the peer's SEND_REQUEST showed that it has our message.
	RequestTakenAsAck
	// StaleClearUsed: this send used a CLEAR_TO_SEND received before it began.
	StaleClearUsed
	// RequestWasDuplicate: a packet of the peer shows that it is in no send, so an earlier SEND_REQUEST was a late
	// duplicate.
	RequestWasDuplicate
	// ClearWasDuplicate: a packet of the peer shows that it is in a send, so the CLEAR_TO_SEND of this message was a
	// late duplicate.
	ClearWasDuplicate
	// StartedOver: the part of a message received so far was discarded.
	StartedOver
	// RequestRetransmitted: the peer retransmitted its SEND_REQUEST.
	RequestRetransmitted
	// Padding: the peer's DATA was padded.
	Padding
	// DeliveredDuplicate: a copy of an earlier message, made by the network and delayed until the next message was
	// cleared, was delivered in place of that one. It equals the earlier message, and the real one has arrived since.
	DeliveredDuplicate
	// EarlyData: DATA came sooner after CLEAR_TO_SEND than any before, and is held back until it is clear that no other
	// DATA follows.
	EarlyData
	// EarlyAck: ACK came sooner after DATA than any before, and is held back until it is clear that the peer does not
	// ask for DATA again.
	EarlyAck
	// ClearAfterDone: a deployed peer sent CLEAR_TO_SEND again after its message was reported as done, so DATA may not
	// have arrived.
	ClearAfterDone
	// SecondData: two messages, or too much payload, came for one CLEAR_TO_SEND. The network made a copy, and the
	// delivered message may be the copy.
	SecondData
	// RepeatedContent: a message equals one of the last 256 of its sender. That is legal, and the only sign of a copy
	// received in place of a lost message.
	RepeatedContent
	// Resumed: the message being received was cleared by an earlier process of this rank.
	Resumed
	// WouldWedge: this packet would wedge a deployed FPGA or corrupt its data; Err describes how. Only stand-ins report
	// it.
	WouldWedge
	// Withdrawn: the peer no longer sends a message that it asked to send, or has revoked its CLEAR_TO_SEND.
	Withdrawn
	numEvents
)

var eventNames = [numEvents]string{
	"", "retransmitted", "reacked", "crossed", "request_taken_as_ack",
	"stale_clear_used", "request_was_duplicate", "clear_was_duplicate", "started_over", "request_retransmitted",
	"padding", "delivered_duplicate",
	"early_data", "early_ack", "clear_after_done", "second_data", "repeated_content", "resumed", "would_wedge_fpga",
	"withdrawn",
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
