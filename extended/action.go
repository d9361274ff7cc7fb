package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// ID identifies a send. The caller chooses IDs, which must be unique among the pending sends. Actions return them
// unchanged.
type ID uint64

// Message identifies an inbound message. It is unique across all sessions of a Conn.
type Message uint64

// Number returns the message number that packets carry. It is unique only within a session.
func (m Message) Number() uint32 { return uint32(m) }

// SendOp is a send operation.
type SendOp struct {
	ID ID
	// Length is the length of the message in bytes. It must be less than 2³².
	Length    int64
	Comm, Tag uint32
	Datatype  protocol.Datatype
	// Sync is set for a synchronous send, which completes only after a receive has matched (E12).
	Sync bool
	// Announce forces rendezvous, whatever the length. As with Sync, completion shows that a receive has matched;
	// unlike with Sync, the peer does not learn that the caller waits for this (E12).
	Announce bool
	// Partial is set if no payload is available yet. The caller calls SetReady as payload becomes available (E49).
	Partial bool
}

// ActionKind is the kind of an Action.
type ActionKind uint8

const (
	// Transmit: send a packet with Header, whose remaining fields protocol.PutExtended computes. The payload is the
	// bytes from Offset to Offset+Length of send ID, and empty if Length is 0. If Length exceeds Conn.Payload, the
	// network has to fragment the packet. ID is 0 if the packet neither carries payload of a send nor announces one.
	// Payload is nil.
	Transmit ActionKind = iota + 1
	// TransmitAck: send a packet that consists of Header and Payload. Payload is valid until the next event. ID, Offset
	// and Length are 0, because an ACK carries no payload of a send.
	TransmitAck
	// Buffered: send ID begins eagerly. A caller that copies the payload may report the send as complete at once (E11);
	// SendDone follows nevertheless. Buffered precedes the first Transmit of the send.
	Buffered
	// ClearedToSend: the peer is ready to receive the payload of the Partial send ID.
	ClearedToSend
	// SendDone: send ID is finished, so its payload is no longer needed. The send failed if Err is not nil.
	SendDone
	// RestingSendsDone: all resting sends (see RestSend) have failed with error Err.
	RestingSendsDone
	// Open: the inbound message Message begins; it has Length bytes of type Datatype. Match it by Comm and Tag. Eager
	// is set if the peer sends its DATA without waiting for CLEAR_TO_SEND, and Advertised if PacketAdvertised handled
	// its packet. Messages are opened in the order in which the peer sent them.
	Open
	// Copy: copy Payload to offset Offset of the inbound message Message. Payload is valid only until the actions of
	// the event have been executed. The Conn copies no byte of a message twice, and no byte beyond the capacity passed
	// to Accept.
	Copy
	// Arrived: all payload of Message has been received, so no further Copy follows. For an eager message, Arrived may
	// come before or after Accept.
	Arrived
	// Lost: the open message Message will never complete, because of Err. No further action refers to it. If the
	// message was resting, Ref is the ref passed to Rest; otherwise it is 0.
	Lost
	// LostRests: all resting messages that were only announced are lost because of Err. Resting eager messages remain,
	// because they were received completely.
	LostRests
	// Kept: a message sent with a short header continues as the ordinary send ID. Its payload is the Length bytes that
	// begin Offset bytes before the end of all payload passed to SentShort.
	Kept
	// Drop: an incoming packet was dropped because of Reason. Header is the header of the packet, or zero if it was
	// defective. In a Drop or Note, all fields not mentioned are zero.
	Drop
	// Note: count or log Event, if desired.
	Note
	// AskLink: call LinkLimit.
	AskLink
	// Question: the peer asks for a report about the operations that this rank waits for. Call AnswerReport with the
	// report.
	Question
	// Report: the question that AskReport began was answered or has failed. If the peer answered, Payload is its
	// report, which is valid until the next event. Otherwise, Payload is nil and Err is the reason.
	Report
)

var actionNames = [...]string{
	"", "Transmit", "TransmitAck", "Buffered", "ClearedToSend", "SendDone", "RestingSendsDone", "Open", "Copy",
	"Arrived",
	"Lost", "LostRests", "Kept", "Drop", "Note", "AskLink", "Question", "Report",
}

// String returns the name of the constant for the kind of action, for example Transmit.
func (k ActionKind) String() string {
	if int(k) < len(actionNames) {
		return actionNames[k]
	}
	return "ActionKind?"
}

// Action is a step for the caller to execute. Fields that its kind does not use may hold stale values of an earlier
// action, because clearing them would take too long.
type Action struct {
	Kind       ActionKind
	Datatype   protocol.Datatype // of Open
	Eager      bool              // of Open
	Advertised bool              // of Open
	Reason     Reason
	Event      Event
	ID         ID
	Message    Message
	Ref        uint32
	Header     protocol.ExtHeader
	Offset     int64
	Length     int64
	Payload    []byte
	Comm       uint32
	Tag        uint32
	Err        error
}
