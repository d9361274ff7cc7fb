package protocol

import (
	"fmt"
	"strconv"
)

// The extended profile: section 14 of docs/ZRLMPI_protocol.md. A packet is a
// header of ExtHeaderLen bytes and a payload; its first HeaderLen bytes are a
// frame that tools for the other profiles can read.

// Sizes and numbers of the extended profile.
const (
	// ExtHeaderLen is the length in bytes of a header of the extended profile.
	ExtHeaderLen = 80
	// ExtVersion is byte 18 of every packet.
	ExtVersion = 0xE2
	// MaxUDPDatagram is the most bytes that UDP over IPv4 carries (E1).
	MaxUDPDatagram = 65507
	// MaxStreamPayload is the most bytes that may follow a header on a
	// stream (E1).
	MaxStreamPayload = 32768
	// MaxExtTag is the largest tag, 2³¹ − 1.
	MaxExtTag = 1<<31 - 1
)

// ExtFlags are bits 0–5 of byte 19. Bit 7, which is always set on the wire, and
// bit 6, which never is, are no part of them.
type ExtFlags uint8

// The flags of a packet.
const (
	// FlagEager: DATA that was not asked for by CLEAR_TO_SEND (E11).
	FlagEager ExtFlags = 1 << iota
	// FlagAckNow asks for an ACK at once (E27).
	FlagAckNow
	// FlagSync: the send waits until it is matched (E12).
	FlagSync
	// FlagHello: an ACK that asks for the peer's session (E7).
	FlagHello
	// FlagRetransmit: the packet was sent before with the same number (E29).
	FlagRetransmit
	// FlagPlain: the checksum covers the header alone (E43).
	FlagPlain
	extFlagsEnd
)

const (
	extFlagsAll   = extFlagsEnd - 1
	extFlagAlways = 0x80
)

var extFlagNames = [...]string{"EAGER", "ACK_NOW", "SYNC", "HELLO", "RETRANSMIT", "PLAIN"}

// String names the flags that are set, as "EAGER ACK_NOW"; "" for none.
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

// ErrorCode is what an ERROR packet says, in its tag field.
type ErrorCode uint32

// The codes of section 14.
const (
	// CodeCancel: the sender asks to take a message back (E16).
	CodeCancel ErrorCode = 1 + iota
	// CodeCanceled: the receiver has forgotten the message (E16).
	CodeCanceled
	// CodeTooLong: the receiver refuses the message (E17).
	CodeTooLong
	// CodeClose: the rank shuts down (E9). Such an ERROR is not numbered.
	CodeClose
	// CodeAborted: the rest of a message does not come (E49).
	CodeAborted
	numErrorCodes
)

var errorCodeNames = [numErrorCodes]string{"", "cancel", "canceled", "too long", "close", "aborted"}

// String returns the code's name as section 14 has it.
func (c ErrorCode) String() string {
	if c > 0 && c < numErrorCodes {
		return errorCodeNames[c]
	}
	return fmt.Sprintf("code(%d)", uint32(c))
}

// ExtHeader is one decoded header of the extended profile. The start and end
// mark, the version, the size field, the payload's length and the checksum are
// PutExtended's to write and ParseExtended's to check.
type ExtHeader struct {
	// Dst and Src are the ranks of the packet's receiver and sender.
	Dst, Src uint32
	// Call is SEND_x from the message's sender and RECV_x from its receiver;
	// RECV_INT in ACK.
	Call  Call
	Type  Type
	Flags ExtFlags
	// Session is the source's session with this peer, never 0; PeerSession
	// the destination's, 0 while it is not known (E5–E8).
	Session, PeerSession Session
	// Number is that of a numbered packet, from 1 up; otherwise 0 (E3).
	Number uint32
	// Acknowledged is the number of the peer's first packet that has not
	// arrived.
	Acknowledged uint32
	// Message is the number of the message that the packet is about, from 1
	// up in each session and direction; 0 for none.
	Message uint32
	// Comm is the message's communicator.
	Comm uint32
	// Tag is the message's tag, 0 to MaxExtTag; in ERROR, the ErrorCode; in ACK 0, or the number of
	// a question (E53).
	Tag uint32
	// Length is that of the message in bytes; in CLEAR_TO_SEND, the bytes that the receiver
	// takes; in ACK, how many packets its sender takes (E32), 0 for 512, or the length of a report (E53).
	Length uint32
	// Offset is the payload's place in the message or report, in bytes; in another ACK 0, or the payload of a
	// probe (E35).
	Offset uint32
	// Clock is the time by the source's clock of a numbered packet and of HELLO; in
	// another ACK, that of the packet that arrived last (E25).
	Clock uint32
}

// Session is a random number that a rank chooses for what it exchanges with one peer
// (E5). 0 is none. Its 64 bits are what a packet has to know to be accepted.
type Session uint64

// String returns 16 hexadecimal digits.
func (s Session) String() string { return fmt.Sprintf("%016x", uint64(s)) }

// MarshalText makes a Session a string in JSON, whose numbers have 53 bits in many
// programs.
func (s Session) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (s *Session) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 16, 64)
	*s = Session(n)
	return err
}

// Code returns what an ERROR packet says.
func (h *ExtHeader) Code() ErrorCode { return ErrorCode(h.Tag) }

// Numbered reports whether packets of this type bear a number and are retransmitted
// until they are acknowledged (E3).
func (h *ExtHeader) Numbered() bool {
	switch h.Type {
	case SendRequest, ClearToSend, Data:
		return true
	case Error:
		return h.Code() != CodeClose
	}
	return false
}

// Question returns the number of the question that the packet asks (E53), and false if it is none.
func (h *ExtHeader) Question() (number uint32, ok bool) {
	return h.Tag, h.Type == Ack && h.Tag != 0 && h.Flags&FlagHello != 0
}

// Report returns the number of the question that the packet answers with a part of a report (E53), and false
// if it does not.
func (h *ExtHeader) Report() (number uint32, ok bool) {
	return h.Tag, h.Type == Ack && h.Tag != 0 && h.Flags&FlagHello == 0
}

// Size returns the size field of the frame: the words of the whole message,
// rounded up, in SEND_REQUEST and DATA, and otherwise 0.
func (h *ExtHeader) Size() uint32 {
	if h.Type != SendRequest && h.Type != Data {
		return 0
	}
	return uint32((uint64(h.Length) + WordLen - 1) / WordLen)
}

// Frame returns what tools that know the other profiles read.
func (h *ExtHeader) Frame() Header {
	return Header{Dst: h.Dst, Src: h.Src, Size: h.Size(), Call: h.Call, Type: h.Type}
}

// String prints the header as zrlctl does:
// "DATA 0→1 SEND_INT #17 msg=3 tag=5 comm=0 at 4096 of 100000 EAGER ack=12".
func (h *ExtHeader) String() string {
	return h.text(fmt.Sprintf("at %d", h.Offset))
}

// Describe is String for a packet of which the payload's length in bytes is
// known: "… 4096..5440 of 100000 …", the last number not included.
func (h *ExtHeader) Describe(payload int) string {
	return h.text(fmt.Sprintf("%d..%d", h.Offset, int64(h.Offset)+int64(payload)))
}

func (h *ExtHeader) text(place string) string {
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
