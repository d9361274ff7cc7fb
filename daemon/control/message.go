package control

import (
	"encoding/json"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/query"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// AnyRank as the local rank of a request selects the lowest of the daemon's ranks that are configured with run:
// host.
const AnyRank = query.AnyRank

// Micros is a duration in microseconds. 0 means not measured, and is encoded as null in JSON.
type Micros float64

// MarshalJSON implements json.Marshaler.
func (m Micros) MarshalJSON() ([]byte, error) {
	if m == 0 {
		return []byte("null"), nil
	}
	return json.Marshal(float64(m))
}

// Phases contains the times between the steps of a message's handshake, as seen by the local rank, which is the sender
// of an outgoing message or the receiver of an incoming one.
type Phases struct {
	RequestToClear Micros `json:"request_to_clear_us"`
	ClearToData    Micros `json:"clear_to_data_us"`
	DataToAck      Micros `json:"data_to_ack_us"`
	// Retransmissions is the number of packets retransmitted by the local rank.
	Retransmissions int `json:"retransmissions"`
}

func newPhases(p handshake.Phases) Phases {
	return Phases{
		RequestToClear:  microsBetween(p.Request, p.Clear),
		ClearToData:     microsBetween(p.Clear, p.Data),
		DataToAck:       microsBetween(p.Data, p.Ack),
		Retransmissions: p.Retransmissions,
	}
}

// microsBetween returns the time from a to b in microseconds, or 0 if the message skipped one of the steps.
func microsBetween(a, b handshake.Instant) Micros {
	if a == 0 || b < a {
		return 0
	}
	return Micros(toMicros(b - a))
}

func toMicros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// Message describes a sent or received message.
type Message struct {
	From     int    `json:"src"`
	To       int    `json:"dst"`
	Words    uint32 `json:"words"`
	Datatype string `json:"datatype"`
	Tag      int    `json:"tag"`
	// Elapsed is the time from posting the operation to its completion, in microseconds.
	Elapsed float64 `json:"elapsed_us"`
	Phases  Phases  `json:"phases"`
	// Truncated is non-empty if the received message was longer than the buffer. The reply then contains only the
	// beginning of the message.
	Truncated string `json:"truncated,omitempty"`
}

// describeMessage converts the status of a send or receive of the rank local. In the result, From is always the sender.
func describeMessage(local int, status mpe.Status) Message {
	message := Message{
		From: status.Peer, To: local, Words: status.Words, Datatype: status.Datatype.String(), Tag: status.Tag,
		Elapsed: toMicros(status.Elapsed()), Phases: newPhases(status.Phases),
	}
	if status.Send {
		message.From, message.To = local, status.Peer
	}
	return message
}

// SendRequest describes a message to send.
type SendRequest struct {
	// From is the local rank, or AnyRank.
	From, To int
	Datatype protocol.Datatype
	Tag      int
	// Timeout is the maximum duration of the operation; 0 means no limit.
	Timeout time.Duration
}

// RecvRequest describes a message to receive.
type RecvRequest struct {
	// To is the local rank, or AnyRank.
	From, To int
	// Words is the length of the receive buffer in words.
	Words int
	// Datatype must equal the sender's datatype, unless AnyDatatype is set.
	Datatype    protocol.Datatype
	AnyDatatype bool
	// Timeout is the maximum duration of the operation; 0 means no limit.
	Timeout time.Duration
}
