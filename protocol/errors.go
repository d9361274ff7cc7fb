package protocol

import "fmt"

// DefectKind says what is wrong with a header. The names of the kinds are those
// of counters and log fields.
type DefectKind uint8

// The ways in which bytes fail to be a header.
const (
	// DefectNone is a good header.
	DefectNone DefectKind = iota
	// DefectShort: fewer bytes than a header has. Offset is their number.
	DefectShort
	// DefectStartMark and DefectEndMark: a byte of a mark is not 0x96.
	DefectStartMark
	DefectEndMark
	// DefectReserved: a byte that must be zero is not. Deployed nodes drop
	// such a packet silently. In the extended profile: byte 18 is not
	// ExtVersion, or a reserved bit of byte 19 is not what it must be.
	DefectReserved
	// DefectCall and DefectType: a number that the protocol page does not
	// define.
	DefectCall
	DefectType
	// DefectLength and DefectChecksum are of whole packets of the extended
	// profile, and only ParseExtended finds them: more or fewer bytes follow
	// the header than it says, and a packet that was corrupted in transit.
	DefectLength
	DefectChecksum
	numDefects
)

var defectNames = [numDefects]string{"none", "short", "start_mark", "end_mark", "reserved", "call", "type", "length", "checksum"}

// String returns the kind's name in snake case.
func (k DefectKind) String() string {
	if k < numDefects {
		return defectNames[k]
	}
	return fmt.Sprintf("defect(%d)", uint8(k))
}

// Defect names the first byte for which a header is refused.
type Defect struct {
	Kind DefectKind
	// Offset is the byte's place in the header, 0–79; for DefectShort, how
	// many bytes there were.
	Offset uint8
	// Got and Want are the byte found and, where there is only one right
	// value, the byte expected. For DefectShort, Want is ExtHeaderLen if that
	// many bytes were needed.
	Got, Want byte
	// Got32 and Want32 are the numbers found in the header and computed from
	// the packet, for DefectLength and DefectChecksum.
	Got32, Want32 uint32
}

// OK reports whether there is no defect.
func (d Defect) OK() bool { return d.Kind == DefectNone }

// Err returns d as a *HeaderError, or nil if there is no defect.
func (d Defect) Err() error {
	if d.OK() {
		return nil
	}
	return &HeaderError{d}
}

// HeaderError is a Defect as an error.
type HeaderError struct{ Defect }

// Error names the offending byte.
func (e *HeaderError) Error() string {
	switch e.Kind {
	case DefectShort:
		return fmt.Sprintf("zrlmpi header: %d bytes, but a header has %d", e.Offset, max(HeaderLen, int(e.Want)))
	case DefectStartMark, DefectEndMark:
		return fmt.Sprintf("zrlmpi header: byte %d is 0x%02x, but the %s is 0x%02x",
			e.Offset, e.Got, map[DefectKind]string{DefectStartMark: "start mark", DefectEndMark: "end mark"}[e.Kind], Mark)
	case DefectReserved:
		if e.Want != 0 {
			return fmt.Sprintf("zrlmpi header: byte %d is 0x%02x, but in the extended profile must be 0x%02x", e.Offset, e.Got, e.Want)
		}
		return fmt.Sprintf("zrlmpi header: byte %d is 0x%02x, but must be 0", e.Offset, e.Got)
	case DefectCall:
		return fmt.Sprintf("zrlmpi header: byte %d is 0x%02x, but the calls are 0 to %d", e.Offset, e.Got, numCalls-1)
	case DefectType:
		return fmt.Sprintf("zrlmpi header: byte %d is 0x%02x, but the packet types are 1 to %d", e.Offset, e.Got, numTypes-1)
	case DefectLength:
		return fmt.Sprintf("zrlmpi packet: %d bytes follow the header, which says %d", e.Want32, e.Got32)
	case DefectChecksum:
		return fmt.Sprintf("zrlmpi packet: the checksum is 0x%08x, but that of its bytes is 0x%08x: it was corrupted in transit", e.Got32, e.Want32)
	}
	return "zrlmpi header: " + e.Kind.String()
}

// Is makes errors.Is match any HeaderError of the same kind.
func (e *HeaderError) Is(target error) bool {
	t, ok := target.(*HeaderError)
	return ok && t.Kind == e.Kind
}
