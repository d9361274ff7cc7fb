package protocol

import (
	"encoding/binary"
	"fmt"
)

// These sizes and numbers are fixed by the protocol page and by the deployed nodes.
const (
	// Mark is the value of bytes 0–3 and 28–31 in every header.
	Mark = 0x96
	// HeaderLen is the length of a header in bytes. Handshake packets consist of a header alone.
	HeaderLen = 32
	// Port is the port that every rank uses for UDP, and zrlmpid also for TCP.
	Port = 2718
	// WordLen is the length of a word in bytes. The sizes in headers are counted in words.
	WordLen = 4
	// MaxDatagram is the length, in bytes and including the header, of the longest datagram that deployed nodes send.
	// The VXLAN of the deployed network carries no longer datagrams.
	MaxDatagram = 1416
	// MaxRanksFPGA and MaxRanksCPU are the largest numbers of ranks in a cluster that the deployed FPGA and upstream's
	// CPU library, respectively, support.
	MaxRanksFPGA = 64
	MaxRanksCPU  = 128
)

// Byte offsets of the header's fields.
const (
	offDst      = 4
	offSrc      = 8
	offSize     = 12
	offCall     = 16
	offType     = 17
	offTag      = 18
	offReserved = 19
	offEnd      = 28
)

// markWord is a start or end mark as an integer. Its 4 bytes are equal, so the byte order does not matter.
const markWord = 0x96969696

// Header is a decoded ZRLMPI header.
type Header struct {
	// Dst is the rank to which the packet is addressed, and Src the rank that sent it.
	Dst, Src uint32
	// Size is the length of the message in words, without the header. Deployed nodes set it in DATA, and send 0 in
	// every other packet.
	Size uint32
	// Call is the operation that the sender of the packet is executing: SEND_x in SEND_REQUEST and DATA, and RECV_x in
	// CLEAR_TO_SEND and ACK.
	Call Call
	// Type is the packet type.
	Type Type
	// Tag is the tag of the message in profile V09. It is 0 in the other profiles, which do not transmit it.
	Tag uint8
}

// String prints the header as zrlctl does: "DATA 0→1 SEND_INT size=347".
func (h Header) String() string {
	s := fmt.Sprintf("%v %d→%d %v", h.Type, h.Src, h.Dst, h.Call)
	if h.Size != 0 || h.Type == Data {
		s += fmt.Sprintf(" size=%d", h.Size)
	}
	if h.Tag != 0 {
		s += fmt.Sprintf(" tag=%d", h.Tag)
	}
	return s
}

// Profile is a variant of the header format. Two ranks that communicate must be configured with the same Profile.
type Profile uint8

const (
	// CloudFPGA is the profile of deployed FPGAs and of upstream's CPU library: bytes 18–27 are zero, and a packet with
	// any other value there is dropped.
	CloudFPGA Profile = iota
	// V09 follows the protocol page to the letter: byte 18 is a tag.
	V09
	// Extended is the profile for two ranks that both run zrlmpid. Its header is longer. PutExtended and ParseExtended
	// handle its complete packets. Put and Parse of this Profile handle only the frame, which is the first HeaderLen
	// bytes: Put makes no complete packet, and Parse does not verify the checksum.
	Extended
	numProfiles
)

var profileNames = [numProfiles]string{"cloudfpga", "v0.9", "extended"}

// String returns the name that configuration files use for the profile.
func (p Profile) String() string {
	if p < numProfiles {
		return profileNames[p]
	}
	return fmt.Sprintf("profile(%d)", uint8(p))
}

// ParseProfile is the inverse of String.
func ParseProfile(s string) (Profile, error) {
	for i, name := range profileNames {
		if s == name {
			return Profile(i), nil
		}
	}
	return 0, fmt.Errorf("unknown profile %q: the profiles are %q, %q and %q", s, CloudFPGA, V09, Extended)
}

// Put writes h into the first HeaderLen bytes of b, which must be at least that long. It writes the tag only in V09.
func (p Profile) Put(b []byte, header Header) {
	_ = b[HeaderLen-1]
	binary.LittleEndian.PutUint32(b[0:], markWord)
	binary.LittleEndian.PutUint32(b[offDst:], header.Dst)
	binary.LittleEndian.PutUint32(b[offSrc:], header.Src)
	binary.LittleEndian.PutUint32(b[offSize:], header.Size)
	b[offCall] = byte(header.Call)
	b[offType] = byte(header.Type)
	clear(b[offTag:offEnd])
	switch p {
	case V09:
		b[offTag] = header.Tag
	case Extended:
		b[offVersion], b[offFlags] = ExtVersion, extFlagAlways
	}
	binary.LittleEndian.PutUint32(b[offEnd:], markWord)
}

// Append appends the encoded header to b and returns the extended slice.
func (p Profile) Append(b []byte, h Header) []byte {
	var buf [HeaderLen]byte
	p.Put(buf[:], h)
	return append(b, buf[:]...)
}

// BeginsWithMark reports whether b starts with the four bytes of the start mark, as every packet does.
func BeginsWithMark(b []byte) bool {
	return len(b) >= 4 && binary.LittleEndian.Uint32(b) == markWord
}

// Parse decodes the header at the start of b and ignores the bytes after it. If the header is valid, the Defect is
// zero. Parse returns a Defect instead of an error, so that a flood of invalid packets causes no allocation. Decode is
// like Parse, but returns an error.
func (p Profile) Parse(b []byte) (Header, Defect) {
	if len(b) < HeaderLen {
		return Header{}, Defect{Kind: DefectShort, Offset: uint8(len(b))}
	}
	if binary.LittleEndian.Uint32(b) != markWord {
		return Header{}, firstMismatch(b, 0, offDst, Mark, DefectStartMark)
	}
	if binary.LittleEndian.Uint32(b[offEnd:]) != markWord {
		return Header{}, firstMismatch(b, offEnd, HeaderLen, Mark, DefectEndMark)
	}
	if p == Extended {
		return parseExtFrame(b)
	}
	from := offTag
	if p == V09 {
		from = offReserved
	}
	// Bytes 20–27 are compared at once, and bytes 18 and 19 separately.
	if b[offReserved] != 0 || (from == offTag && b[offTag] != 0) ||
		binary.LittleEndian.Uint64(b[offReserved+1:]) != 0 {
		return Header{}, firstMismatch(b, from, offEnd, 0, DefectReserved)
	}
	header := Header{
		Dst:  binary.LittleEndian.Uint32(b[offDst:]),
		Src:  binary.LittleEndian.Uint32(b[offSrc:]),
		Size: binary.LittleEndian.Uint32(b[offSize:]),
		Call: Call(b[offCall]),
		Type: Type(b[offType]),
		Tag:  b[offTag],
	}
	if header.Call >= numCalls {
		return header, Defect{Kind: DefectCall, Offset: offCall, Got: b[offCall]}
	}
	if header.Type == 0 || header.Type >= numTypes {
		return header, Defect{Kind: DefectType, Offset: offType, Got: b[offType]}
	}
	return header, Defect{}
}

// Decode decodes the header at the start of b. If the header is invalid, the error is a *HeaderError.
func (p Profile) Decode(b []byte) (Header, error) {
	h, d := p.Parse(b)
	return h, d.Err()
}

// firstMismatch returns a Defect of the given kind that describes the first byte in b[from:to] whose value is not want.
func firstMismatch(b []byte, from, to int, want byte, kind DefectKind) Defect {
	for i := from; i < to; i++ {
		if b[i] != want {
			return Defect{Kind: kind, Offset: uint8(i), Got: b[i], Want: want}
		}
	}
	return Defect{Kind: kind, Offset: uint8(from)}
}
