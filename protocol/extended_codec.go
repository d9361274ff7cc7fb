package protocol

import "encoding/binary"

// Byte offsets of the fields that the extended profile adds.
const (
	offVersion     = 18
	offFlags       = 19
	offPayload     = 20
	offChecksum    = 24
	offSession     = 32
	offPeerSession = 40
	offNumber      = 48
	offAcked       = 52
	offMessage     = 56
	offComm        = 60
	offMessageTag  = 64
	offLength      = 68
	offOffset      = 72
	offClock       = 76
)

// VersionOffset is where a packet of the extended profile has its version.
const VersionOffset = offVersion

// IsExtended reports whether b begins like a packet of the extended profile:
// with the start mark, the version and bit 7 of the flags. No packet of another
// profile does: byte 19 is 0 in all of them.
func IsExtended(b []byte) bool {
	return len(b) > offFlags && binary.LittleEndian.Uint32(b) == markWord &&
		b[offVersion] == ExtVersion && b[offFlags]&extFlagAlways != 0
}

// PutExtended writes the header of a packet whose payload is the given parts,
// one behind the other, into the first ExtHeaderLen bytes of b, which must be
// that long: size, payload length and checksum are derived. It does not
// allocate. On a stream a payload has at most MaxStreamPayload bytes.
func PutExtended(b []byte, h *ExtHeader, payload ...[]byte) {
	header := (*[ExtHeaderLen]byte)(b)
	length := 0
	for _, part := range payload {
		length += len(part)
	}
	// Two fields at a time, as the checksum's instruction reads them.
	put2(header[0:], markWord, h.Dst)
	put2(header[offSrc:], h.Src, h.Size())
	put2(header[offCall:], uint32(h.Call)|uint32(h.Type)<<8|ExtVersion<<16|uint32(h.Flags&extFlagsAll|extFlagAlways)<<24, uint32(length))
	binary.LittleEndian.PutUint32(header[offEnd:], markWord)
	binary.LittleEndian.PutUint64(header[offSession:], uint64(h.Session))
	binary.LittleEndian.PutUint64(header[offPeerSession:], uint64(h.PeerSession))
	put2(header[offNumber:], h.Number, h.Acknowledged)
	put2(header[offMessage:], h.Message, h.Comm)
	put2(header[offMessageTag:], h.Tag, h.Length)
	put2(header[offOffset:], h.Offset, h.Clock)
	putExtChecksum(header, payload)
}

func put2(b []byte, first, second uint32) {
	binary.LittleEndian.PutUint64(b, uint64(first)|uint64(second)<<32)
}

// AppendExtended appends a whole packet to b and returns the extended slice.
func AppendExtended(b []byte, h *ExtHeader, payload []byte) []byte {
	var buf [ExtHeaderLen]byte
	at := len(b)
	b = append(b, buf[:]...)
	b = append(b, payload...)
	PutExtended(b[at:], h, b[at+ExtHeaderLen:])
	return b
}

// ParseExtended checks and decodes one whole packet, in the order of E2 up to
// the reserved flags; ranks and sessions are the caller's, and so is whether the
// numbers are valid. The size field is ignored. payload is the rest
// of packet, not a copy. Like Profile.Parse it never allocates. Where the defect
// is one of those that come after the checksum, the header is decoded all the
// same.
func ParseExtended(packet []byte) (h ExtHeader, payload []byte, d Defect) {
	n := min(len(packet), ExtHeaderLen)
	h, d = ParseExtendedParts(packet[:n], packet[n:])
	switch d.Kind {
	case DefectNone, DefectCall, DefectType, DefectReserved:
		if n == ExtHeaderLen && packet[offVersion] == ExtVersion {
			payload = packet[n:]
		}
	}
	return h, payload, d
}

// ParseExtendedParts is ParseExtended of a packet that is in two pieces, of which
// the first is its header.
func ParseExtendedParts(header, payload []byte) (h ExtHeader, d Defect) {
	if h.ParseParts(header, payload) {
		return h, Defect{}
	}
	h = ExtHeader{}
	if d = checkExtFrame(header); !d.OK() {
		return h, d
	}
	b := (*[ExtHeaderLen]byte)(header)
	if said := binary.LittleEndian.Uint32(b[offPayload:]); uint64(said) != uint64(len(payload)) {
		return h, Defect{Kind: DefectLength, Offset: offPayload, Got32: said, Want32: uint32(len(payload))}
	}
	said := binary.LittleEndian.Uint32(b[offChecksum:])
	if sum := extChecksum(b, payload); said != sum {
		return h, Defect{Kind: DefectChecksum, Offset: offChecksum, Got32: said, Want32: sum}
	}
	h.Decode(b)
	return h, checkExtRest(b[:])
}

// Parse is ParseExtended for receivers of many packets: it decodes a packet
// without a defect in place. Of any other it says only that it has one; h is
// undefined then.
func (h *ExtHeader) Parse(packet []byte) (payload []byte, ok bool) {
	if len(packet) < ExtHeaderLen {
		return nil, false
	}
	payload = packet[ExtHeaderLen:]
	return payload, h.ParseParts(packet[:ExtHeaderLen], payload)
}

// ParseParts is Parse of a packet that is in two pieces, of which the first is its
// header. If it has a defect, h is undefined. What is decoded is what is checked:
// where the header lies, another process may be able to write.
func (h *ExtHeader) ParseParts(header, payload []byte) bool {
	if len(header) != ExtHeaderLen {
		return false
	}
	b := (*[ExtHeaderLen]byte)(header)
	h.Decode(b)
	return binary.LittleEndian.Uint32(b[0:]) == markWord && binary.LittleEndian.Uint32(b[offEnd:]) == markWord &&
		b[offVersion] == ExtVersion && uint64(binary.LittleEndian.Uint32(b[offPayload:])) == uint64(len(payload)) &&
		h.Call < numCalls && h.Type-1 < numTypes-1 && b[offFlags]&^byte(extFlagsAll) == extFlagAlways &&
		binary.LittleEndian.Uint32(b[offChecksum:]) == extChecksum(b, payload)
}

// ParseExtendedHeader decodes a header of which the payload is not at hand, and
// returns how many bytes of it are to follow. Neither they nor the checksum are
// checked: it is for tools that read streams and short recordings.
func ParseExtendedHeader(b []byte) (h ExtHeader, payload uint32, d Defect) {
	if d = checkExtFrame(b); !d.OK() {
		return h, 0, d
	}
	h.Decode((*[ExtHeaderLen]byte)(b))
	return h, binary.LittleEndian.Uint32(b[offPayload:]), checkExtRest(b)
}

// Decode decodes a header without looking for defects: there are none.
func (h *ExtHeader) Decode(b *[ExtHeaderLen]byte) {
	h.Dst = binary.LittleEndian.Uint32(b[offDst:])
	h.Src = binary.LittleEndian.Uint32(b[offSrc:])
	h.Call = Call(b[offCall])
	h.Type = Type(b[offType])
	h.Flags = ExtFlags(b[offFlags]) & extFlagsAll
	h.Session = Session(binary.LittleEndian.Uint64(b[offSession:]))
	h.PeerSession = Session(binary.LittleEndian.Uint64(b[offPeerSession:]))
	h.Number = binary.LittleEndian.Uint32(b[offNumber:])
	h.Acknowledged = binary.LittleEndian.Uint32(b[offAcked:])
	h.Message = binary.LittleEndian.Uint32(b[offMessage:])
	h.Comm = binary.LittleEndian.Uint32(b[offComm:])
	h.Tag = binary.LittleEndian.Uint32(b[offMessageTag:])
	h.Length = binary.LittleEndian.Uint32(b[offLength:])
	h.Offset = binary.LittleEndian.Uint32(b[offOffset:])
	h.Clock = binary.LittleEndian.Uint32(b[offClock:])
}

// checkExtFrame checks what the header alone shows and comes before
// the payload's length: length, marks and version.
func checkExtFrame(b []byte) Defect {
	if len(b) < ExtHeaderLen {
		return Defect{Kind: DefectShort, Offset: uint8(len(b)), Want: ExtHeaderLen}
	}
	if binary.LittleEndian.Uint32(b) != markWord {
		return firstOther(b, 0, offDst, Mark, DefectStartMark)
	}
	if binary.LittleEndian.Uint32(b[offEnd:]) != markWord {
		return firstOther(b, offEnd, HeaderLen, Mark, DefectEndMark)
	}
	return checkExtVersion(b)
}

func checkExtVersion(b []byte) Defect {
	if b[offVersion] != ExtVersion {
		return Defect{Kind: DefectReserved, Offset: offVersion, Got: b[offVersion], Want: ExtVersion}
	}
	return Defect{}
}

// checkExtRest checks what comes after the checksum: call, type and reserved
// flags.
func checkExtRest(b []byte) Defect {
	if Call(b[offCall]) >= numCalls {
		return Defect{Kind: DefectCall, Offset: offCall, Got: b[offCall]}
	}
	if t := Type(b[offType]); t == 0 || t >= numTypes {
		return Defect{Kind: DefectType, Offset: offType, Got: b[offType]}
	}
	if want := b[offFlags]&byte(extFlagsAll) | extFlagAlways; b[offFlags] != want {
		return Defect{Kind: DefectReserved, Offset: offFlags, Got: b[offFlags], Want: want}
	}
	return Defect{}
}

// parseExtFrame is Parse of the profile Extended. The marks are good.
func parseExtFrame(b []byte) (Header, Defect) {
	if d := checkExtVersion(b); !d.OK() {
		return Header{}, d
	}
	h := Header{
		Dst:  binary.LittleEndian.Uint32(b[offDst:]),
		Src:  binary.LittleEndian.Uint32(b[offSrc:]),
		Size: binary.LittleEndian.Uint32(b[offSize:]),
		Call: Call(b[offCall]),
		Type: Type(b[offType]),
	}
	return h, checkExtRest(b)
}
