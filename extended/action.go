package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// ID identifies a send to the caller, who must not use it for two sends at a time. Actions return it unchanged.
type ID uint64

// Message identifies an inbound message to the caller. It is unique among the messages of a Conn, in all sessions.
type Message uint64

// Number returns the number of the message on the wire, within its session.
func (m Message) Number() uint32 { return uint32(m) }

// SendOp is a send operation.
type SendOp struct {
	ID ID
	// Length of the message in bytes, less than 2³².
	Length    int64
	Comm, Tag uint32
	Datatype  protocol.Datatype
	// Sync: the send is complete only after a receive has matched (E12).
	Sync bool
	// Announce: the message is sent by rendezvous, whatever its length. Its completion then shows that a receive has
	// matched, as for Sync; the peer does not know of the difference (E12).
	Announce bool
	// Partial: no payload is available yet. Ready reports it (E49).
	Partial bool
}

// ActionKind is the kind of an Action.
type ActionKind uint8

const (
	// Transmit: send a packet with Header, complete except for the fields that protocol.PutExtended computes, and with
	// the bytes from Offset to Offset+Length of message ID as its payload; with no payload if Length is 0. If Length
	// exceeds Conn.Payload, the network has to fragment the packet. ID is 0 in packets that neither have payload of a
	// message nor announce one. Payload is nil.
	Transmit ActionKind = iota + 1
	// TransmitAck: send Header with Payload, which is valid until the next event. ID, Offset and Length are 0.
	TransmitAck
	// Buffered: message ID is sent eagerly now. A caller that copies its payload may report the send as complete (E11);
	// SendDone follows nevertheless. It precedes the first Transmit of the message.
	Buffered
	// ClearedToSend: the peer has asked for DATA of the Partial message ID.
	ClearedToSend
	// SendDone: message ID is done, with error Err or nil. Its payload is not needed any more.
	SendDone
	// RestingSendsDone: all resting sends are done, with error Err.
	RestingSendsDone
	// Open: the inbound message Message begins, with Length bytes of Datatype; match it by Comm and Tag. Eager is set
	// if its DATA is sent without CLEAR_TO_SEND, Advertised if its packet was handled by PacketAdvertised. Messages are
	// opened in the order in which they were sent.
	Open
	// Copy: write Payload to byte Offset of message Message. The bytes are valid until the actions of the event are
	// executed. No byte of a message is copied twice, and none beyond the room given to Accept.
	Copy
	// Arrived: no further Copy follows for Message. For an eager message it may precede or follow Accept.
	Arrived
	// Lost: the opened message Message will never complete, because of Err. No action follows for it. Ref is the ref of
	// Rest if the message rested, or 0.
	Lost
	// LostRests: all resting messages are lost because of Err, except eager ones, which are complete.
	LostRests
	// Kept: message ID, which was sent with a short header, continues as an ordinary send. Its payload is the first
	// Length bytes of the last Offset bytes of all messages passed to SentShort.
	Kept
	// Drop: an incoming packet was dropped, for Reason. Header is zero if it was defective. All other fields are zero,
	// as for Note.
	Drop
	// Note: an event to count or log; the caller need not do anything.
	Note
	// AskLink: call LinkLimit.
	AskLink
	// Question: the peer asks for a report on the waits of this rank. Call Answer with it.
	Question
	// Report: the question of Ask is done. Payload is the peer's report, valid until the next event, or nil with an
	// error Err.
	Report
)

var actionNames = [...]string{
	"", "Transmit", "TransmitAck", "Buffered", "ClearedToSend", "SendDone", "RestingSendsDone", "Open", "Copy",
	"Arrived",
	"Lost", "LostRests", "Kept", "Drop", "Note", "AskLink", "Question", "Report",
}

// String returns the name of the kind's constant.
func (k ActionKind) String() string {
	if int(k) < len(actionNames) {
		return actionNames[k]
	}
	return "ActionKind?"
}

// Action is one step for the caller to execute, in order. Fields that its kind does not name have stale values from an
// earlier action in the same place: to clear them would cost more than most of the other work.
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
