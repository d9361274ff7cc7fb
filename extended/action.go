package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// ID names a send for the caller, who must not use it for two at a time. It is
// handed back in actions unchanged.
type ID uint64

// Message names an inbound message to the caller. No two messages of a Conn have
// the same, in whatever session they came.
type Message uint64

// Number is the message's number on the wire, within its session.
func (m Message) Number() uint32 { return uint32(m) }

// SendOp is a message to be sent.
type SendOp struct {
	ID ID
	// Length is in bytes, at most what 32 bits can say.
	Length    int64
	Comm, Tag uint32
	Datatype  protocol.Datatype
	// Sync: the send is not done before a receive has matched (E12).
	Sync bool
	// Announce: it goes by rendezvous, whatever its length, and its end says that a receive has matched as that of a
	// Sync one does; the peer does not know (E12).
	Announce bool
	// Partial: there is none of the payload yet. Ready says when there is (E49).
	Partial bool
}

// ActionKind says what the caller is to do.
type ActionKind uint8

const (
	// Transmit: send a packet of Header, which lacks nothing but what
	// protocol.PutExtended derives, and of the bytes from Offset up to
	// Offset+Length of the message ID; of no payload if Length is 0. With more
	// than Payload bytes, the network has to fragment it. ID is 0
	// in packets that neither bear some of a message nor announce one; Payload
	// is nil.
	Transmit ActionKind = iota + 1
	// TransmitAck: send Header with Payload, which is valid until the next
	// event. ID, Offset and Length are 0.
	TransmitAck
	// Buffered: the message ID goes eagerly now. A caller that copies its
	// payload may call the send complete (E11); SendDone follows all the
	// same. It comes before the message's first Transmit.
	Buffered
	// ClearedToSend: the peer has asked for DATA of the Partial message ID.
	ClearedToSend
	// SendDone: the message ID has ended, with Err or without. Its payload is
	// not asked for any more.
	SendDone
	// RestingSendsDone: so have all sends that rest.
	RestingSendsDone
	// Open: the inbound message Message begins, of Length bytes and of
	// Datatype, and is to be matched by Comm and Tag; Eager if its DATA comes
	// without being asked for; Advertised if what has just arrived was given to
	// Advertised. Messages are opened in the order in which they were sent.
	Open
	// Copy: write Payload at byte Offset of the message Message. The bytes
	// are valid until the caller of the event has carried out its actions. No
	// byte of a message comes twice, and none beyond the room that Accept
	// gave.
	Copy
	// Arrived: no Copy follows for Message. That of an eager message may come
	// before its Accept or after.
	Arrived
	// Lost: Message, which was opened, will never have Arrived, because of
	// Err. Nothing more follows for it. Ref of Rest if it rested, and 0 otherwise.
	Lost
	// LostRests: so will none of the messages that rest, but for eager ones, which are complete.
	LostRests
	// Kept: the message ID, which was sent with a short header, goes on like others. Its payload are the
	// first Length bytes of the last Offset ones of all messages for which SentShort was called.
	Kept
	// Drop: a packet that arrived was not used, for Reason. Header is 0 if
	// that was at fault. All other fields are 0, as those of Note.
	Drop
	// Note: something happened that the caller may want to count or log;
	// nothing needs to be done.
	Note
	// AskLink: call LinkLimit.
	AskLink
	// Question: the peer asks for a report on what this rank waits for. Call Answer when it is made.
	Question
	// Report: the question of Ask has ended. Payload is the peer's report, valid until the next event; nil if there is none because of Err.
	Report
)

var actionNames = [...]string{
	"", "Transmit", "TransmitAck", "Buffered", "ClearedToSend", "SendDone", "RestingSendsDone", "Open", "Copy", "Arrived",
	"Lost", "LostRests", "Kept", "Drop", "Note", "AskLink", "Question", "Report",
}

// String returns the name of the kind's constant.
func (k ActionKind) String() string {
	if int(k) < len(actionNames) {
		return actionNames[k]
	}
	return "ActionKind?"
}

// Action is one thing for the caller to do, in order. What its kind does not
// name remains from the action that was in the same place before: to write
// it would cost more than most of the rest.
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
