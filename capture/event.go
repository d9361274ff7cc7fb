package capture

import (
	"net/netip"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// EventKind says what a unit, or a part of one, turned out to be.
type EventKind uint8

const (
	// PacketEvent: a header, in a DATA datagram with the beginning of the
	// payload.
	PacketEvent EventKind = iota + 1
	// PayloadEvent: payload without a header.
	PayloadEvent
	// BadEvent: bytes that are neither.
	BadEvent
)

// String returns "packet", "payload" or "bad".
func (k EventKind) String() string {
	return [...]string{"", "packet", "payload", "bad"}[k]
}

// Event is one ZRLMPI packet or piece of payload in a recording. It is valid
// until the callback that it is given to returns.
type Event struct {
	Packet   int64
	Time     time.Time
	Proto    pcapng.Proto
	Src, Dst netip.AddrPort
	// Length is the unit's, in bytes as on the wire; for TCP, that of the
	// header or piece of payload.
	Length int
	Kind   EventKind
	// Header is that of a PacketEvent, and what could be read of it in a
	// BadEvent. HasRanks reports that the ranks are known, which payload without a header
	// has from its message.
	Header   protocol.Header
	HasRanks bool
	// Message is the ID of the message that this belongs to, 0 if none.
	Message int64
	// InData is true for DATA and payload without a header whose message is known. Offset
	// is the payload's place in the message, Bytes its length without
	// Padding, Total the message's, all in bytes. DataPacket is the number of
	// the packet with the DATA header. Completes is true for the last piece.
	InData               bool
	Offset, Bytes, Total int64
	Padding              int
	DataPacket           int64
	Completes            bool
	// Retransmitted is true for a packet that the message had before:
	// retransmitted after a time-out or, if Duplicate, copied by the network.
	Retransmitted, Duplicate bool
	// Reason says why a live rank would have dropped it; Byte is the
	// offending byte of a header.
	Reason handshake.Reason
	Byte   uint8
	// Extended is what a packet of the extended profile has beyond a Header;
	// nil for any other.
	Extended *Extended
	// Data are the bytes themselves.
	Data []byte
	// Trail is the unit's: where several recordings have seen it, or nil.
	Trail *pcapng.Trail
}

// fate says what became of the packet between several recordings.
func (e *Event) fate() pcapng.Fate {
	if e.Trail == nil {
		return pcapng.FateUnknown
	}
	return e.Trail.Fate
}

// isCopy reports whether a packet that equals one a time ago is a copy that the network made, rather than a
// retransmission: if several recordings do not show it, by that time.
func (e *Event) isCopy(since time.Duration) bool {
	switch e.fate() {
	case pcapng.Copied:
		return true
	case pcapng.Delivered, pcapng.Lost: // its sender has transmitted it
		return false
	}
	return since < duplicateWindow
}
