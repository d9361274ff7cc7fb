package capture

import (
	"time"

	"github.com/zrlmpi/zrlmpid/diagnosis/infer"
)

// Message is one message as the recording shows it.
type Message struct {
	// ID numbers the messages of a recording from 1, in the order of their
	// first packets.
	ID  int64 `json:"id"`
	Src int   `json:"src"`
	Dst int   `json:"dst"`
	// Words is the size that DATA announced; 0 if no DATA was recorded.
	Words uint32 `json:"words"`
	// Call is the sender's: "SEND_INT" or "SEND_FLOAT".
	Call string `json:"call"`
	Tag  int    `json:"tag,omitempty"`
	// Start is the time of the first packet, in seconds since the first
	// packet of the recording.
	Start float64 `json:"start_seconds"`
	// Phases are in seconds; null where a step is not in the recording.
	Phases Phases `json:"phases"`
	// Retransmissions counts the retransmitted packets, SEND_REQUESTs,
	// CLEAR_TO_SENDs, DATAs and ACKs together; a DATA counts once, however
	// many datagrams it is fragmented into.
	Retransmissions int `json:"retransmissions"`
	// Complete is true if an ACK ended the message.
	Complete bool `json:"complete"`
	// Verdict says in a few words how the message went: "ok", or what is
	// wrong with it.
	Verdict string `json:"verdict"`
	// Ended is the time of the packet by which the pair went on without an ACK of the message. It is zero if the
	// message is complete, or open at the end of the recording.
	Ended time.Time `json:"-"`
	// Steps are the message's packets in order, as far as they are kept.
	Steps []Step `json:"-"`
}

// Phases are the parts of a message's time, in seconds.
type Phases struct {
	RequestToClear *float64 `json:"request_to_clear_seconds"`
	ClearToData    *float64 `json:"clear_to_data_seconds"`
	DataToAck      *float64 `json:"data_to_ack_seconds"`
	Total          *float64 `json:"total_seconds"`
}

// Step is one packet of a message. A DATA that is fragmented into datagrams is one
// step, from its first datagram to its last.
type Step struct {
	// Packet is the number of the step's first packet, Packets how many
	// there are.
	Packet  int64
	Packets int
	// Time and End are those of its first and last packet.
	Time, End time.Time
	// Type is the packet type's name, "SEND_REQUEST" and so on.
	Type string
	// FromSender is true for SEND_REQUEST and DATA.
	FromSender bool
	// Retransmitted is true if the message had such a packet before.
	Retransmitted bool
	// Bytes is the payload that the step carried, padding not counted.
	Bytes int64
}

// Finding is something that went wrong, or is worth knowing.
type Finding struct {
	// Kind is one of the Kind constants.
	Kind Kind `json:"kind"`
	// Packets are the numbers of the packets that show it.
	Packets []int64 `json:"packets"`
	// Text says what happened, in words.
	Text string `json:"text"`
	// Messages are the IDs of the messages that it concerns.
	Messages []int64 `json:"messages,omitempty"`
	// Time is in seconds since the first packet of the recording.
	Time float64 `json:"time_seconds"`
	// Possible are the causes that the recording leaves for the wait of a message that has not ended, the likeliest first.
	Possible []infer.Possibility `json:"possible,omitempty"`
	// Waits are the waits that the finding is about: those of messages that have not
	// ended.
	Waits []Wait `json:"-"`
}

// Wait is a rank that waits in a message at the end of the recording.
type Wait struct {
	// Message is the ID of the message.
	Message int64
	// Rank waits for For, the name of a packet type, from Peer.
	Rank, Peer int
	For        string
	Since      time.Time
}

// Kind names a kind of finding.
type Kind string

// The kinds of findings.
const (
	// LostPacket: a retransmission or a missing datagram shows that one was lost.
	LostPacket Kind = "lost_packet"
	// RetransmittedPacket: a packet was retransmitted after a time-out.
	RetransmittedPacket Kind = "retransmitted_packet"
	// DuplicatePacket: the network delivered a packet twice.
	DuplicatePacket Kind = "duplicate_packet"
	// StaleHeader: a CLEAR_TO_SEND or ACK that answers nothing, or DATA that
	// was not cleared.
	StaleHeader Kind = "stale_header"
	// WrongSource: a header's source rank comes from another address than
	// before, or one address speaks for two ranks.
	WrongSource Kind = "wrong_source"
	// WrongDestination: a packet names another rank than the one that speaks from its destination.
	WrongDestination Kind = "wrong_destination"
	// Fragmented: a datagram was split into IP fragments, which an FPGA does not join.
	Fragmented Kind = "fragmented"
	// DatatypeMismatch: INT meets FLOAT.
	DatatypeMismatch Kind = "datatype_mismatch"
	// ReservedByte: a byte that must be 0 is not; deployed nodes drop the
	// packet silently.
	ReservedByte Kind = "reserved_byte"
	// BadHeader: another defect of a header.
	BadHeader Kind = "bad_header"
	// Padding: a node pads its payload, as FPGAs do.
	Padding Kind = "padding"
	// SizeMismatch: more or fewer bytes arrived than DATA announced.
	SizeMismatch Kind = "size_mismatch"
	// CrossedRequests: both ranks of a pair asked to send at the same time.
	CrossedRequests Kind = "crossed_requests"
	// RetransmissionsExhausted: a sender stopped retransmitting, and got no answer.
	RetransmissionsExhausted Kind = "retransmissions_exhausted"
	// NeverCleared: a SEND_REQUEST was never answered.
	NeverCleared Kind = "never_cleared"
	// Corrupt: the checksum of a packet of the extended profile is wrong.
	Corrupt Kind = "corrupt"
	// SessionChanged: a rank has a new session with a peer of the extended
	// profile: it was restarted, or has given the peer up.
	SessionChanged Kind = "session_changed"
	// ClosedByPeer: a rank of the extended profile said that it shuts down.
	ClosedByPeer Kind = "closed_by_peer"
	// Refused: a receiver of the extended profile refused a message.
	Refused Kind = "refused"
	// Wedged: a node is in a state that it cannot leave by itself; the text
	// says which trap of the protocol document explains it.
	Wedged Kind = "wedged"
	// Waiting: at the end of the recording a rank still waits.
	Waiting Kind = "waiting"
	// Deadlock: at the end of the recording ranks wait for each other in a
	// circle.
	Deadlock Kind = "deadlock"
)
