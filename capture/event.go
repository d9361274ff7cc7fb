package capture

import (
	"net/netip"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// EventKind is the kind of an event.
type EventKind uint8

const (
	// PacketEvent is a packet with a header. In a DATA datagram, the beginning of the payload follows the header.
	PacketEvent EventKind = iota + 1
	// PayloadEvent is payload without a header.
	PayloadEvent
	// BadEvent is neither a valid packet nor payload that was expected.
	BadEvent
)

// String returns "packet", "payload" or "bad".
func (k EventKind) String() string {
	return [...]string{"", "packet", "payload", "bad"}[k]
}

// Event is one ZRLMPI packet or piece of payload in a recording. It is valid only during the callback that receives it.
type Event struct {
	Packet   int64
	Time     time.Time
	Proto    pcapng.Proto
	Src, Dst netip.AddrPort
	// Length is the length on the wire in bytes. It covers the whole datagram or, in a TCP stream, the header or the
	// piece of payload.
	Length int
	Kind   EventKind
	// Header is the header of a PacketEvent, or the readable part of a BadEvent's header. HasRanks is true if the ranks
	// in Header are known. Payload without a header has the ranks of its message.
	Header   protocol.Header
	HasRanks bool
	// Message is the ID of the event's message, or 0.
	Message int64
	// IsData is true for DATA, and for payload without a header whose message is known. Offset is the position of the
	// payload in the message, Bytes its length without Padding, and Total the length of the message, all in bytes.
	// DataPacket is the number of the packet with the DATA header. IsLastPiece is true for the last piece of the
	// message.
	IsData               bool
	Offset, Bytes, Total int64
	Padding              int
	DataPacket           int64
	IsLastPiece          bool
	// Retransmitted is true for a packet seen before in the message: a retransmission or, if Duplicate, a copy made by
	// the network.
	Retransmitted, Duplicate bool
	// Reason is the reason for which a live rank would drop the packet. BadByte is the position in the header of the
	// byte that causes this.
	Reason  handshake.Reason
	BadByte uint8
	// Extended holds the additional fields of a packet of the extended profile. It is nil for other packets.
	Extended *Extended
	// Data holds the recorded bytes of the packet or payload.
	Data []byte
	// Trail lists the recordings that contain the packet. It is nil unless several recordings were joined.
	Trail *pcapng.Trail
}

// fate returns what happened to the packet according to joined recordings. It is FateUnknown for a single recording.
func (e *Event) fate() pcapng.Fate {
	if e.Trail == nil {
		return pcapng.FateUnknown
	}
	return e.Trail.Fate
}

// isCopy reports whether a packet that equals an earlier one is a copy made by the network and not a retransmission.
// since is the time since the earlier packet, which isCopy uses only if the recordings do not show the packet's fate.
func (e *Event) isCopy(since time.Duration) bool {
	switch e.fate() {
	case pcapng.FateCopied:
		return true
	case pcapng.FateDelivered, pcapng.FateLost: // the sender transmitted it again
		return false
	}
	return since < duplicateWindow
}
