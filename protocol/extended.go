package protocol

import (
	"fmt"
	"strconv"
)

// The extended profile is specified in section 14 of docs/ZRLMPI_protocol.md. A packet consists of a header of
// ExtHeaderLen bytes and a payload. The first HeaderLen bytes of the header are a frame that tools for the other
// profiles can read.

// Sizes and limits of the extended profile.
const (
	// ExtHeaderLen is the length of a header of the extended profile in bytes.
	ExtHeaderLen = 80
	// ExtVersion is the version of the extended profile. Byte 18 of every packet contains it.
	ExtVersion = 0xE2
	// MaxUDPDatagram is the maximum length of a UDP datagram over IPv4, in bytes (E1).
	MaxUDPDatagram = 65507
	// MaxStreamPayload is the maximum length, in bytes, of the payload that a packet may have on a stream (E1).
	MaxStreamPayload = 32768
	// MaxExtTag is the largest tag that the extended profile allows, 2³¹ − 1.
	MaxExtTag = 1<<31 - 1
)

// ExtFlags holds bits 0–5 of byte 19 in a header of the extended profile. Bit 7, which is always set on the wire, and
// bit 6, which is never set, are not included.
type ExtFlags uint8

// Flags of a packet.
const (
	// FlagEager marks DATA sent without CLEAR_TO_SEND (E11).
	FlagEager ExtFlags = 1 << iota
	// FlagAckNow asks for an immediate ACK (E27).
	FlagAckNow
	// FlagSync marks a message whose send completes only after a receive has matched it (E12).
	FlagSync
	// FlagHello marks an ACK that asks for the peer's session (E7).
	FlagHello
	// FlagRetransmit marks a retransmission: a packet with the same number was sent before (E29).
	FlagRetransmit
	// FlagPlain marks a packet whose checksum covers only the header (E43).
	FlagPlain
	extFlagsEnd
)

const (
	extFlagsAll   = extFlagsEnd - 1
	extFlagAlways = 0x80
)

var extFlagNames = [...]string{"EAGER", "ACK_NOW", "SYNC", "HELLO", "RETRANSMIT", "PLAIN"}

// String returns the names of the set flags, as "EAGER ACK_NOW", or "" if no flag is set.
func (f ExtFlags) String() string {
	var s string
	for i, name := range extFlagNames {
		if f&(1<<i) != 0 {
			if s != "" {
				s += " "
			}
			s += name
		}
	}
	if rest := f &^ extFlagsAll; rest != 0 {
		s += fmt.Sprintf(" 0x%02x", uint8(rest))
	}
	return s
}

// ErrorCode is the reason for which an ERROR packet was sent. The tag field of the packet contains it.
type ErrorCode uint32

// Error codes of section 14.
const (
	// CodeCancel: the sender asks to cancel a message (E16).
	CodeCancel ErrorCode = 1 + iota
	// CodeCanceled: the receiver agrees to the cancellation, and has discarded the message (E16).
	CodeCanceled
	// CodeTooLong: the receiver refuses the message as too long (E17).
	CodeTooLong
	// CodeClose: the sender of the ERROR is shutting down (E9). This ERROR is not numbered.
	CodeClose
	// CodeAborted: the sender will not send the rest of the message (E49).
	CodeAborted
	numErrorCodes
)

var errorCodeNames = [numErrorCodes]string{"", "cancel", "canceled", "too long", "close", "aborted"}

// String returns the name that section 14 uses for the code.
func (c ErrorCode) String() string {
	if c > 0 && c < numErrorCodes {
		return errorCodeNames[c]
	}
	return fmt.Sprintf("code(%d)", uint32(c))
}

// ExtHeader is a decoded header of the extended profile. PutExtended writes the marks, the version, the size field, the
// payload length and the checksum, and ParseExtended checks them.
type ExtHeader struct {
	// Dst is the rank to which the packet is addressed, and Src the rank that sent it.
	Dst, Src uint32
	// Call is SEND_x if the packet comes from the sender of a message, and RECV_x if it comes from the receiver. In ACK
	// it is RECV_INT.
	Call  Call
	Type  Type
	Flags ExtFlags
	// Session is the session of the rank that sent the packet; it is never 0. PeerSession is the session of the rank to
	// which it is addressed, or 0 while the sender does not know it (E5–E8).
	Session, PeerSession Session
	// Number is the packet number, which starts at 1. It is 0 in an unnumbered packet (E3).
	Number uint32
	// Acknowledged is the lowest packet number that the sender of this packet has not received yet.
	Acknowledged uint32
	// Message is the number of the message to which the packet belongs, or 0 if it belongs to none. Messages are
	// numbered from 1 up in each session and direction.
	Message uint32
	// Comm is the communicator of the message.
	Comm uint32
	// Tag is the tag of the message, 0 to MaxExtTag. In ERROR it is the ErrorCode; in ACK it is 0 or the number of a
	// question (E53).
	Tag uint32
	// Length is the length of the message in bytes; in CLEAR_TO_SEND, it is the number of bytes that the receiver
	// accepts. In ACK it is the length of a report (E53), or the number of packets that the ACK's sender accepts (E32),
	// where 0 means 512.
	Length uint32
	// Offset is the offset of the payload in the message or report, in bytes. In an ACK that carries no part of a
	// report, it is the payload length of a probe (E35), or 0.
	Offset uint32
	// Clock is the time, by its sender's clock, at which a numbered packet or HELLO was sent. In any other ACK, it is
	// the Clock of the packet that the ACK's sender received last (E25).
	Clock uint32
}

// Session is a random number that a rank chooses for its communication with one peer (E5). 0 means no session. A rank
// accepts a packet only if the packet's sender knows all 64 bits.
type Session uint64

// String returns s as 16 hexadecimal digits.
func (s Session) String() string { return fmt.Sprintf("%016x", uint64(s)) }

// MarshalText returns the text that String returns. A Session is a string in JSON, because many programs read JSON
// numbers with only 53 bits of precision.
func (s Session) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText sets s to the session whose MarshalText returned the given text.
func (s *Session) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 16, 64)
	*s = Session(n)
	return err
}

// Code returns the error code that an ERROR packet contains.
func (h *ExtHeader) Code() ErrorCode { return ErrorCode(h.Tag) }

// IsNumbered reports whether the packet has a number, so that it is retransmitted until it is acknowledged (E3).
func (h *ExtHeader) IsNumbered() bool {
	switch h.Type {
	case SendRequest, ClearToSend, Data:
		return true
	case Error:
		return h.Code() != CodeClose
	}
	return false
}

// Question returns the number of the question that the packet asks. ok is false if it asks none (E53).
func (h *ExtHeader) Question() (number uint32, ok bool) {
	return h.Tag, h.Type == Ack && h.Tag != 0 && h.Flags&FlagHello != 0
}

// Report returns the number of the question that the packet answers with a part of a report. ok is false if it answers
// none (E53).
func (h *ExtHeader) Report() (number uint32, ok bool) {
	return h.Tag, h.Type == Ack && h.Tag != 0 && h.Flags&FlagHello == 0
}

// Size returns the value for the size field of the frame. In SEND_REQUEST and DATA, it is the length of the whole
// message in words, rounded up. In other packets, it is 0.
func (h *ExtHeader) Size() uint32 {
	if h.Type != SendRequest && h.Type != Data {
		return 0
	}
	return uint32((uint64(h.Length) + WordLen - 1) / WordLen)
}

// Frame returns the header in the form in which tools for the other profiles decode it.
func (h *ExtHeader) Frame() Header {
	return Header{Dst: h.Dst, Src: h.Src, Size: h.Size(), Call: h.Call, Type: h.Type}
}

// String prints the header as zrlctl does:
// "DATA 0→1 SEND_INT #17 msg=3 tag=5 comm=0 at 4096 of 100000 EAGER ack=12".
func (h *ExtHeader) String() string {
	return h.format(fmt.Sprintf("at %d", h.Offset))
}

// Describe is like String, but also prints the end of the payload, whose length is given in bytes: "… 4096..5440 of
// 100000 …". The byte at the end, 5440, is excluded.
func (h *ExtHeader) Describe(payload int) string {
	return h.format(fmt.Sprintf("%d..%d", h.Offset, int64(h.Offset)+int64(payload)))
}

// format describes the header. place describes the position of the payload in the message.
func (h *ExtHeader) format(place string) string {
	s := fmt.Sprintf("%v %d→%d %v", h.Type, h.Src, h.Dst, h.Call)
	if h.Number != 0 {
		s += fmt.Sprintf(" #%d", h.Number)
	}
	if h.Message != 0 {
		s += fmt.Sprintf(" msg=%d", h.Message)
	}
	switch h.Type {
	case SendRequest:
		s += fmt.Sprintf(" tag=%d comm=%d length=%d", h.Tag, h.Comm, h.Length)
	case ClearToSend:
		s += fmt.Sprintf(" takes=%d", h.Length)
	case Data:
		s += fmt.Sprintf(" tag=%d comm=%d %s of %d", h.Tag, h.Comm, place, h.Length)
	case Error:
		s += fmt.Sprintf(" %q", h.Code().String())
	case Ack:
		if number, ok := h.Question(); ok {
			s += fmt.Sprintf(" question=%d", number)
		} else if number, ok := h.Report(); ok {
			s += fmt.Sprintf(" report=%d %s of %d", number, place, h.Length)
		} else if h.Offset != 0 {
			s += fmt.Sprintf(" probe=%d", h.Offset)
		}
	}
	if h.Flags != 0 {
		s += " " + h.Flags.String()
	}
	return s + fmt.Sprintf(" ack=%d", h.Acknowledged)
}
