package capture

import (
	"time"

	"github.com/zrlmpi/zrlmpid/diagnosis/infer"
)

// Message is a message reconstructed from the recording.
type Message struct {
	// ID is the number of the message in the recording. Messages are numbered from 1 in the order of their first
	// packets.
	ID  int64 `json:"id"`
	Src int   `json:"src"`
	Dst int   `json:"dst"`
	// Words is the size announced by DATA, or 0 if no DATA was recorded.
	Words uint32 `json:"words"`
	// Call is the sender's call: "SEND_INT" or "SEND_FLOAT".
	Call string `json:"call"`
	Tag  int    `json:"tag,omitempty"`
	// Start is the time of the first packet, in seconds since the first packet of the recording.
	Start float64 `json:"start_seconds"`
	// Phases holds the durations of the phases. A duration is null if one of its packets is not in the recording.
	Phases Phases `json:"phases"`
	// Retransmissions counts retransmitted packets of all types. DATA counts once even if it is fragmented into several
	// datagrams.
	Retransmissions int `json:"retransmissions"`
	// Complete is true if an ACK ended the message.
	Complete bool `json:"complete"`
	// Verdict is "ok", or a few words about the problem.
	Verdict string `json:"verdict"`
	// EndTime is the time of the packet that ended a message without an ACK, for example the SEND_REQUEST of the next
	// message. It is zero if the message is complete or was still open at the end of the recording.
	EndTime time.Time `json:"-"`
	// Steps lists the first steps of the message in order, at most KeepSteps.
	Steps []Step `json:"-"`
}

// Phases holds the durations of a message's phases, in seconds.
type Phases struct {
	RequestToClear *float64 `json:"request_to_clear_seconds"`
	ClearToData    *float64 `json:"clear_to_data_seconds"`
	DataToAck      *float64 `json:"data_to_ack_seconds"`
	Total          *float64 `json:"total_seconds"`
}

// Step describes one packet of a message. DATA is one step even if it is fragmented into several datagrams.
type Step struct {
	// Packet is the number of the step's first packet in the recording. Packets is the number of packets in the step.
	Packet  int64
	Packets int
	// Time and End are the times of the first and the last packet.
	Time, End time.Time
	// Type is the name of the packet type, such as "SEND_REQUEST".
	Type string
	// FromSender is true for SEND_REQUEST and DATA.
	FromSender bool
	// Retransmitted is true if this packet was seen earlier in the same message.
	Retransmitted bool
	// Bytes is the number of payload bytes, without padding.
	Bytes int64
}

// Finding is a problem, or another fact worth knowing, that the analysis found in the recording.
type Finding struct {
	// Kind is one of the FindingKind constants.
	Kind FindingKind `json:"kind"`
	// Packets lists the numbers of the recorded packets that prove the finding.
	Packets []int64 `json:"packets"`
	// Text describes the finding.
	Text string `json:"text"`
	// Messages lists the IDs of the affected messages.
	Messages []int64 `json:"messages,omitempty"`
	// Time is in seconds since the first packet of the recording.
	Time float64 `json:"time_seconds"`
	// Possible lists the possible causes if the message is open because a rank waits. The likeliest cause comes first.
	Possible []infer.Possibility `json:"possible,omitempty"`
	// Waits lists the waits that the finding describes, if it concerns open messages.
	Waits []Wait `json:"-"`
}

// Wait describes a rank that is still waiting for a packet of a message at the end of the recording.
type Wait struct {
	// Message is the ID of the message.
	Message int64
	// Rank waits for a packet from Peer. PacketType is the name of the packet's type.
	Rank, Peer int
	PacketType string
	Since      time.Time
}

// FindingKind is a kind of finding.
type FindingKind string

// Kinds of findings.
const (
	// LostPacket: a retransmission or a missing datagram shows that a packet was lost.
	LostPacket FindingKind = "lost_packet"
	// RetransmittedPacket: a packet was retransmitted after a timeout.
	RetransmittedPacket FindingKind = "retransmitted_packet"
	// DuplicatePacket: the network delivered a packet twice.
	DuplicatePacket FindingKind = "duplicate_packet"
	// StaleHeader: a CLEAR_TO_SEND or ACK matches no pending packet, or no CLEAR_TO_SEND permitted the DATA.
	StaleHeader FindingKind = "stale_header"
	// WrongSource: a source rank has a different address than before, or one address uses two source ranks.
	WrongSource FindingKind = "wrong_source"
	// WrongDestination: a packet names a destination rank other than the rank at its destination address.
	WrongDestination FindingKind = "wrong_destination"
	// FragmentedPacket: a datagram was split into IP fragments, which an FPGA does not reassemble.
	FragmentedPacket FindingKind = "fragmented"
	// DatatypeMismatch: one rank uses INT and the other FLOAT for the same message.
	DatatypeMismatch FindingKind = "datatype_mismatch"
	// ReservedByte: a header byte that must be 0 is not 0. Deployed nodes drop the packet silently.
	ReservedByte FindingKind = "reserved_byte"
	// BadHeader: a header contains a defect other than a reserved byte.
	BadHeader FindingKind = "bad_header"
	// MixedPadding: a node pads some of its messages but not others.
	MixedPadding FindingKind = "padding"
	// SizeMismatch: more or fewer bytes arrived than DATA announced.
	SizeMismatch FindingKind = "size_mismatch"
	// CrossedRequests: both ranks of a pair sent SEND_REQUEST at the same time.
	CrossedRequests FindingKind = "crossed_requests"
	// RetransmissionsExhausted: a sender that received no answer stopped retransmitting.
	RetransmissionsExhausted FindingKind = "retransmissions_exhausted"
	// NeverCleared: a SEND_REQUEST was never answered.
	NeverCleared FindingKind = "never_cleared"
	// CorruptPacket: the checksum of a packet of the extended profile is wrong.
	CorruptPacket FindingKind = "corrupt"
	// SessionChanged: a rank of the extended profile began a new session with a peer, after a restart of the rank or
	// after it declared the peer unreachable.
	SessionChanged FindingKind = "session_changed"
	// ClosedByPeer: a rank of the extended profile announced that it shuts down.
	ClosedByPeer FindingKind = "closed_by_peer"
	// RefusedMessage: a receiver of the extended profile refused a message.
	RefusedMessage FindingKind = "refused"
	// Wedged: a node is in a state that it cannot leave by itself. The text of the finding names the trap in the
	// protocol document that describes this state.
	Wedged FindingKind = "wedged"
	// StillWaiting: a rank is still waiting at the end of the recording.
	StillWaiting FindingKind = "waiting"
	// Deadlock: ranks wait for each other in a cycle at the end of the recording.
	Deadlock FindingKind = "deadlock"
)
