package handshake

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// ID identifies a message. The caller chooses IDs, and actions return them unchanged.
type ID uint64

// ActionKind is the kind of an Action.
type ActionKind uint8

const (
	// Transmit: send the handshake packet Header.
	Transmit ActionKind = iota + 1
	// TransmitData: send Header with the payload of message ID, fragmented as Config.Shape prescribes, and then call
	// DataSent. Until that call, no timeout of the message runs.
	TransmitData
	// Copy: copy Payload to offset Offset of the buffer of receive ID. Payload is a part of the packet passed to the
	// Pair, and valid only as long as that packet.
	Copy
	// SendDone and RecvDone: message ID is finished, so the Pair is ready for another message in the same direction. Err
	// is not nil if the message failed. Words is the size that the sender announced.
	SendDone
	RecvDone
	// Repost: receive ID was matched with a message that will not come, because its SEND_REQUEST was a late duplicate
	// or was revoked. No data was stored, and the Pair is ready for another receive. Put this receive back in its old
	// place in the caller's queue.
	Repost
	// Drop: an incoming packet was dropped because of Reason.
	Drop
	// Note: count or log Event, if desired.
	Note
	// DeadEnd: the peer cannot continue. The preceding actions have ended the messages of this Pair. The caller must
	// end all other operations that wait for the peer, with error Err.
	DeadEnd
)

// Action is a step for the caller to execute. Its Kind determines which fields are set; the others are zero.
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
	// Phases belongs to SendDone and RecvDone. It is set even if the message failed.
	Phases Phases
}

// Phases records when a message completed each step of the handshake. A time is 0 if the step did not happen.
type Phases struct {
	// Start is the time when the operation was passed to the Pair.
	Start Instant
	// Request is the time when the first SEND_REQUEST was sent or received.
	Request Instant
	// Clear is the time when CLEAR_TO_SEND was sent or received. If it was sent more than once, the one that took
	// effect counts.
	Clear Instant
	// Data is the time when DATA was sent or received completely. If it was sent more than once, the one that took
	// effect counts.
	Data Instant
	// Ack is the time when ACK was sent or received.
	Ack Instant
	// Retransmissions is the number of packets of this message that we retransmitted.
	Retransmissions int
}

// Reason is the reason why an incoming packet was dropped.
type Reason uint8

// Reasons for dropping a packet. The defects of a header come first, in the order of protocol.DefectKind, so that a
// DefectKind can be converted to a Reason.
const (
	ReasonNone Reason = iota
	// ReasonShort to ReasonType are protocol.DefectShort to DefectType.
	ReasonShort
	ReasonStartMark
	ReasonEndMark
	ReasonReserved
	ReasonCall
	ReasonType
	// ReasonSourceRank: the header's source rank differs from the rank that the rank map gives for the source address.
	ReasonSourceRank
	// ReasonDestination: the header is addressed to another rank.
	ReasonDestination
	// ReasonUnknownAddress: the source address is not in the rank map.
	ReasonUnknownAddress
	// ReasonLength: a handshake packet is not 32 bytes long, or a DATA datagram has the wrong length for its position
	// in the message.
	ReasonLength
	// ReasonSize: the size in the header exceeds the configured maximum.
	ReasonSize
	// ReasonDirection: SEND_REQUEST or DATA carries a receive call, or CLEAR_TO_SEND or ACK a send call.
	ReasonDirection
	// ReasonUnexpectedPayload: the packet is payload without a header, and no message in progress expects it.
	ReasonUnexpectedPayload
	// ReasonUnsolicited: DATA came without a CLEAR_TO_SEND.
	ReasonUnsolicited
	// ReasonDuplicate: the message was already received.
	ReasonDuplicate
	// ReasonStale: the packet matches no pending message.
	ReasonStale
	// ReasonDatatype: the datatype (or, in V09, the tag) differs from the expected one.
	ReasonDatatype
	// ReasonGap: a continuation datagram came so late that its message is considered over, or came last although
	// earlier datagrams of the message are missing.
	ReasonGap
	// ReasonBarrier: the call is BARRIER, which zrlmpid ignores as the deployed MPE does.
	ReasonBarrier
	// ReasonStream: the framing of a stream is invalid.
	ReasonStream
	numReasons
)

// reasonNames holds the names that metrics, logs and captures show. Package mpe/core finds a reason's state.DropReason
// by this name.
var reasonNames = [numReasons]string{
	"none", "short", "start_mark", "end_mark", "reserved", "call", "type",
	"source_rank", "destination", "unknown_address", "length", "size", "direction",
	"unexpected_payload", "unsolicited", "duplicate", "stale", "datatype", "gap", "barrier", "stream",
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

// Event is an occurrence that is counted.
type Event uint8

const (
	// Retransmitted: the packet whose header is Header was retransmitted to the peer.
	Retransmitted Event = iota + 1
	// Reacked: a message was acknowledged again because its ACK was lost.
	Reacked
	// Crossed: the peer's SEND_REQUEST crossed with ours; the peer's message is transferred first.
	Crossed
	// RequestTakenAsAck: the peer sent a SEND_REQUEST instead of an ACK, which shows that it has received our message.
	RequestTakenAsAck
	// StaleClearUsed: a send used a CLEAR_TO_SEND that was received before the send began.
	StaleClearUsed
	// RequestWasDuplicate: a packet shows that the peer is not in a send, so its earlier SEND_REQUEST was a late
	// duplicate.
	RequestWasDuplicate
	// ClearWasDuplicate: a packet shows that the peer is in a send, so its CLEAR_TO_SEND for our message was a late
	// duplicate.
	ClearWasDuplicate
	// StartedOver: the part of a message received so far was discarded.
	StartedOver
	// RequestRetransmitted: the peer retransmitted its SEND_REQUEST.
	RequestRetransmitted
	// Padding: the peer's DATA was padded.
	Padding
	// DeliveredDuplicate: the network copied a message and delayed the copy until the next message was cleared, so that
	// the copy was delivered in place of the next message. The real next message was received later.
	DeliveredDuplicate
	// EarlyData: DATA came sooner after CLEAR_TO_SEND than ever before. The Pair holds it back for some time, in case
	// other DATA follows.
	EarlyData
	// EarlyAck: ACK came sooner after DATA than ever before. The Pair holds it back for some time, in case the peer
	// asks for DATA again.
	EarlyAck
	// ClearAfterDone: a deployed peer sent CLEAR_TO_SEND again after a message to it was reported as done, so the DATA
	// may be lost.
	ClearAfterDone
	// SecondData: two messages, or too much payload, came for one CLEAR_TO_SEND. The network has made a copy, and the
	// Pair may have delivered the copy instead of the message.
	SecondData
	// RepeatedContent: a message equals one of the last 256 messages from its sender. This is legal, but also the only
	// sign that a copy was received in place of a lost message.
	RepeatedContent
	// Resumed: the message being received was cleared by an earlier process of this rank, and this process has
	// continued it.
	Resumed
	// WouldWedge: the packet would wedge a deployed FPGA or corrupt its data, as Err describes. Only stand-ins report
	// it.
	WouldWedge
	// Withdrawn: the peer has revoked a SEND_REQUEST or CLEAR_TO_SEND that it had sent.
	Withdrawn
	numEvents
)

// eventNames holds the names of events. Package mpe/core finds an event's state.Event by this name.
var eventNames = [numEvents]string{
	"", "retransmitted", "reacked", "crossed", "request_taken_as_ack",
	"stale_clear_used", "request_was_duplicate", "clear_was_duplicate", "started_over", "request_retransmitted",
	"padding", "delivered_duplicate",
	"early_data", "early_ack", "clear_after_done", "second_data", "repeated_content", "resumed", "would_wedge_fpga",
	"withdrawn",
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
