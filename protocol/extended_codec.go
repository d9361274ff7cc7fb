package protocol

import "encoding/binary"

// These are the byte offsets of the fields that only headers of the extended profile have.
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

// VersionOffset is the offset of the byte that contains the version in a packet of the extended profile.
const VersionOffset = offVersion

// IsExtended reports whether b begins like a packet of the extended profile: with the start mark, the version and bit 7
// of the flags. Packets of the other profiles do not begin like this, because their byte 19 is 0.
func IsExtended(b []byte) bool {
	return len(b) > offFlags && binary.LittleEndian.Uint32(b) == markWord &&
		b[offVersion] == ExtVersion && b[offFlags]&extFlagAlways != 0
}

// PutExtended writes the header of a packet into the first ExtHeaderLen bytes of b, which must be at least that long.
// The payload is the concatenation of the given parts. PutExtended computes the size, the payload length and the
// checksum. It does not allocate. On a stream, the payload must not exceed MaxStreamPayload bytes.
func PutExtended(b []byte, hdr *ExtHeader, payload ...[]byte) {
	header := (*[ExtHeaderLen]byte)(b)
	length := 0
	for _, part := range payload {
		length += len(part)
	}
	// Two fields are written at a time, because the CRC instruction reads them in this size.
	putUint32Pair(header[0:], markWord, hdr.Dst)
	putUint32Pair(header[offSrc:], hdr.Src, hdr.Size())
	putUint32Pair(header[offCall:],
		uint32(hdr.Call)|uint32(hdr.Type)<<8|ExtVersion<<16|uint32(hdr.Flags&extFlagsAll|extFlagAlways)<<24, uint32(length))
	binary.LittleEndian.PutUint32(header[offEnd:], markWord)
	binary.LittleEndian.PutUint64(header[offSession:], uint64(hdr.Session))
	binary.LittleEndian.PutUint64(header[offPeerSession:], uint64(hdr.PeerSession))
	putUint32Pair(header[offNumber:], hdr.Number, hdr.Acknowledged)
	putUint32Pair(header[offMessage:], hdr.Message, hdr.Comm)
	putUint32Pair(header[offMessageTag:], hdr.Tag, hdr.Length)
	putUint32Pair(header[offOffset:], hdr.Offset, hdr.Clock)
	putExtChecksum(header, payload)
}

func putUint32Pair(b []byte, first, second uint32) {
	binary.LittleEndian.PutUint64(b, uint64(first)|uint64(second)<<32)
}

// AppendExtended appends a complete packet to b and returns the extended slice.
func AppendExtended(b []byte, h *ExtHeader, payload []byte) []byte {
	var buf [ExtHeaderLen]byte
	at := len(b)
	b = append(b, buf[:]...)
	b = append(b, payload...)
	PutExtended(b[at:], h, b[at+ExtHeaderLen:])
	return b
}

// ParseExtended checks and decodes a complete packet. It makes the checks of E2 in their order, up to the reserved
// flags; the caller checks ranks, sessions and numbers. It ignores the size field, and never allocates. The returned
// payload is a part of packet, not a copy. If the defect is one that E2 checks after the checksum, h is decoded
// nevertheless.
func ParseExtended(packet []byte) (header ExtHeader, payload []byte, defect Defect) {
	n := min(len(packet), ExtHeaderLen)
	header, defect = ParseExtendedParts(packet[:n], packet[n:])
	switch defect.Kind {
	case DefectNone, DefectCall, DefectType, DefectReserved:
		if n == ExtHeaderLen && packet[offVersion] == ExtVersion {
			payload = packet[n:]
		}
	}
	return header, payload, defect
}

// ParseExtendedParts is like ParseExtended, but takes the header and the payload separately.
func ParseExtendedParts(header, payload []byte) (hdr ExtHeader, defect Defect) {
	if hdr.ParseParts(header, payload) {
		return hdr, Defect{}
	}
	hdr = ExtHeader{}
	if defect = checkExtFrame(header); !defect.OK() {
		return hdr, defect
	}
	b := (*[ExtHeaderLen]byte)(header)
	if said := binary.LittleEndian.Uint32(b[offPayload:]); uint64(said) != uint64(len(payload)) {
		return hdr, Defect{Kind: DefectLength, Offset: offPayload, Got32: said, Want32: uint32(len(payload))}
	}
	said := binary.LittleEndian.Uint32(b[offChecksum:])
	if sum := extChecksum(b, payload); said != sum {
		return hdr, Defect{Kind: DefectChecksum, Offset: offChecksum, Got32: said, Want32: sum}
	}
	hdr.Decode(b)
	return hdr, checkExtFields(b[:])
}

// Parse is a faster ParseExtended that decodes a packet into h. If the packet is invalid, Parse returns false without a
// reason, and h is undefined.
func (h *ExtHeader) Parse(packet []byte) (payload []byte, ok bool) {
	if len(packet) < ExtHeaderLen {
		return nil, false
	}
	payload = packet[ExtHeaderLen:]
	return payload, h.ParseParts(packet[:ExtHeaderLen], payload)
}

// ParseParts is like Parse, but takes the header and the payload separately. It decodes the header first and then
// checks the decoded call and type, because another process may be able to modify the header at any time.
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

// ParseExtendedHeader decodes a header without its payload, and returns the payload length that the header announces,
// in bytes. It checks neither the payload nor the checksum. Tools use it to read streams and truncated recordings.
func ParseExtendedHeader(b []byte) (h ExtHeader, payload uint32, d Defect) {
	if d = checkExtFrame(b); !d.OK() {
		return h, 0, d
	}
	h.Decode((*[ExtHeaderLen]byte)(b))
	return h, binary.LittleEndian.Uint32(b[offPayload:]), checkExtFields(b)
}

// Decode decodes a header without checking it for defects.
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

// checkExtFrame checks the length of the header, its marks and its version. These checks precede the check of the
// payload length.
func checkExtFrame(b []byte) Defect {
	if len(b) < ExtHeaderLen {
		return Defect{Kind: DefectShort, Offset: uint8(len(b)), Want: ExtHeaderLen}
	}
	if binary.LittleEndian.Uint32(b) != markWord {
		return firstMismatch(b, 0, offDst, Mark, DefectStartMark)
	}
	if binary.LittleEndian.Uint32(b[offEnd:]) != markWord {
		return firstMismatch(b, offEnd, HeaderLen, Mark, DefectEndMark)
	}
	return checkExtVersion(b)
}

func checkExtVersion(b []byte) Defect {
	if b[offVersion] != ExtVersion {
		return Defect{Kind: DefectReserved, Offset: offVersion, Got: b[offVersion], Want: ExtVersion}
	}
	return Defect{}
}

// checkExtFields checks the call, the type and the reserved flags. It is called after the checksum was verified.
func checkExtFields(b []byte) Defect {
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

// parseExtFrame implements Profile.Parse for the profile Extended. The caller has already checked the marks.
func parseExtFrame(b []byte) (Header, Defect) {
	if d := checkExtVersion(b); !d.OK() {
		return Header{}, d
	}
	header := Header{
		Dst:  binary.LittleEndian.Uint32(b[offDst:]),
		Src:  binary.LittleEndian.Uint32(b[offSrc:]),
		Size: binary.LittleEndian.Uint32(b[offSize:]),
		Call: Call(b[offCall]),
		Type: Type(b[offType]),
	}
	return header, checkExtFields(b)
}
