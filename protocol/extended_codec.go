package protocol

import (
	"encoding/binary"
	"hash/crc32"
)

// Byte offsets of the fields that the extended profile adds.
const (
	offVersion     = 18
	offFlags       = 19
	offPayload     = 20
	offChecksum    = 24
	offSession     = 32
	offPeerSession = 36
	offNumber      = 40
	offAcked       = 44
	offMessage     = 48
	offComm        = 52
	offMessageTag  = 56
	offLength      = 60
	offOffset      = 64
	offStatus      = 68
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	noChecksum [4]byte
)

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
	b = b[:ExtHeaderLen]
	length := 0
	for _, part := range payload {
		length += len(part)
	}
	binary.LittleEndian.PutUint32(b[0:], markWord)
	binary.LittleEndian.PutUint32(b[offDst:], h.Dst)
	binary.LittleEndian.PutUint32(b[offSrc:], h.Src)
	binary.LittleEndian.PutUint32(b[offSize:], h.Size())
	b[offCall] = byte(h.Call)
	b[offType] = byte(h.Type)
	b[offVersion] = ExtVersion
	b[offFlags] = byte(h.Flags&extFlagsAll) | extFlagAlways
	binary.LittleEndian.PutUint32(b[offPayload:], uint32(length))
	binary.LittleEndian.PutUint32(b[offChecksum:], 0)
	binary.LittleEndian.PutUint32(b[offEnd:], markWord)
	binary.LittleEndian.PutUint32(b[offSession:], h.Session)
	binary.LittleEndian.PutUint32(b[offPeerSession:], h.PeerSession)
	binary.LittleEndian.PutUint32(b[offNumber:], h.Number)
	binary.LittleEndian.PutUint32(b[offAcked:], h.Acknowledged)
	binary.LittleEndian.PutUint32(b[offMessage:], h.Message)
	binary.LittleEndian.PutUint32(b[offComm:], h.Comm)
	binary.LittleEndian.PutUint32(b[offMessageTag:], h.Tag)
	binary.LittleEndian.PutUint32(b[offLength:], h.Length)
	binary.LittleEndian.PutUint32(b[offOffset:], h.Offset)
	binary.LittleEndian.PutUint32(b[offStatus:], 0)
	sum := crc32.Update(0, castagnoli, b)
	for _, part := range payload {
		sum = crc32.Update(sum, castagnoli, part)
	}
	binary.LittleEndian.PutUint32(b[offChecksum:], sum)
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
// numbers make sense. The size field is not looked at. payload is the rest
// of packet, not a copy. Like Profile.Parse it never allocates. Where the defect
// is one of those that come after the checksum, the header is decoded all the
// same.
func ParseExtended(packet []byte) (h ExtHeader, payload []byte, d Defect) {
	if d = checkExtFrame(packet); !d.OK() {
		return h, nil, d
	}
	payload = packet[ExtHeaderLen:]
	if said := binary.LittleEndian.Uint32(packet[offPayload:]); uint64(said) != uint64(len(payload)) {
		return h, nil, Defect{Kind: DefectLength, Offset: offPayload, Got32: said, Want32: uint32(len(payload))}
	}
	said := binary.LittleEndian.Uint32(packet[offChecksum:])
	if sum := extChecksum(packet); said != sum {
		return h, nil, Defect{Kind: DefectChecksum, Offset: offChecksum, Got32: said, Want32: sum}
	}
	return decodeExtHeader(packet), payload, checkExtRest(packet)
}

// ParseExtendedHeader decodes a header of which the payload is not at hand, and
// returns how many bytes of it are to follow. Neither they nor the checksum are
// checked: it is for tools that read streams and short recordings.
func ParseExtendedHeader(b []byte) (h ExtHeader, payload uint32, d Defect) {
	if d = checkExtFrame(b); !d.OK() {
		return h, 0, d
	}
	return decodeExtHeader(b), binary.LittleEndian.Uint32(b[offPayload:]), checkExtRest(b)
}

func decodeExtHeader(b []byte) ExtHeader {
	return ExtHeader{
		Dst:          binary.LittleEndian.Uint32(b[offDst:]),
		Src:          binary.LittleEndian.Uint32(b[offSrc:]),
		Call:         Call(b[offCall]),
		Type:         Type(b[offType]),
		Flags:        ExtFlags(b[offFlags]) & extFlagsAll,
		Session:      binary.LittleEndian.Uint32(b[offSession:]),
		PeerSession:  binary.LittleEndian.Uint32(b[offPeerSession:]),
		Number:       binary.LittleEndian.Uint32(b[offNumber:]),
		Acknowledged: binary.LittleEndian.Uint32(b[offAcked:]),
		Message:      binary.LittleEndian.Uint32(b[offMessage:]),
		Comm:         binary.LittleEndian.Uint32(b[offComm:]),
		Tag:          binary.LittleEndian.Uint32(b[offMessageTag:]),
		Length:       binary.LittleEndian.Uint32(b[offLength:]),
		Offset:       binary.LittleEndian.Uint32(b[offOffset:]),
	}
}

// checkExtFrame checks what can be told from the header alone and comes before
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

// extChecksum computes a packet's checksum with the field itself as 0. The
// packet is not changed: it may be the caller's recording.
func extChecksum(packet []byte) uint32 {
	sum := crc32.Update(0, castagnoli, packet[:offChecksum])
	sum = crc32.Update(sum, castagnoli, noChecksum[:])
	return crc32.Update(sum, castagnoli, packet[offEnd:])
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
