package protocol

import "fmt"

// DefectKind describes what is wrong with a header. Counters and log fields use the names of the kinds.
type DefectKind uint8

// These are the possible defects of a header, and of a packet of the extended profile.
const (
	// DefectNone: the header is valid.
	DefectNone DefectKind = iota
	// DefectShort: the packet is shorter than a header. Offset is its length in bytes.
	DefectShort
	// DefectStartMark and DefectEndMark: a byte of the start mark or of the end mark is not 0x96.
	DefectStartMark
	DefectEndMark
	// DefectReserved: a byte that must be zero is not. Deployed nodes drop such a packet silently. In the extended
	// profile, byte 18 is not ExtVersion, or a reserved bit of byte 19 has the wrong value.
	DefectReserved
	// DefectCall and DefectType: the protocol page does not define the value in the field for the call or the type.
	DefectCall
	DefectType
	// DefectLength: the payload length differs from the one in the header. DefectChecksum: the packet was corrupted in
	// transit. Both are defects of complete packets of the extended profile, which only ParseExtended and
	// ParseExtendedParts detect.
	DefectLength
	DefectChecksum
	numDefects
)

var defectNames = [numDefects]string{"none", "short", "start_mark", "end_mark", "reserved", "call", "type", "length",
	"checksum"}

// String returns the kind's name in snake case.
func (k DefectKind) String() string {
	if k < numDefects {
		return defectNames[k]
	}
	return fmt.Sprintf("defect(%d)", uint8(k))
}

// Defect describes the first invalid byte of a header.
type Defect struct {
	Kind DefectKind
	// Offset is the position of the invalid byte in the header, 0–79. For DefectShort, it is the length of the packet.
	Offset uint8
	// Got is the actual value of the invalid byte. Want is the expected value, if only one is valid. For DefectShort,
	// Want is ExtHeaderLen if a header of the extended profile was expected.
	Got, Want byte
	// Got32 and Want32 are used for DefectLength and DefectChecksum: Got32 is the number in the header, and Want32 the
	// number computed from the packet.
	Got32, Want32 uint32
}

// OK reports whether there is no defect.
func (d Defect) OK() bool { return d.Kind == DefectNone }

// Err returns the defect as a *HeaderError, or nil if there is no defect.
func (d Defect) Err() error {
	if d.OK() {
		return nil
	}
	return &HeaderError{d}
}

// HeaderError is a Defect as an error.
type HeaderError struct{ Defect }

// Error describes the invalid byte and the valid values.
func (e *HeaderError) Error() string {
	switch e.Kind {
	case DefectShort:
		return fmt.Sprintf("zrlmpi header: %d bytes, but a header has %d", e.Offset, max(HeaderLen, int(e.Want)))
	case DefectStartMark, DefectEndMark:
		return fmt.Sprintf("zrlmpi header: byte %d is 0x%02x, but the %s is 0x%02x",
			e.Offset, e.Got, map[DefectKind]string{DefectStartMark: "start mark", DefectEndMark: "end mark"}[e.Kind],
			Mark)
	case DefectReserved:
		if e.Want != 0 {
			return fmt.Sprintf("zrlmpi header: byte %d is 0x%02x, but in the extended profile must be 0x%02x", e.Offset,
				e.Got, e.Want)
		}
		return fmt.Sprintf("zrlmpi header: byte %d is 0x%02x, but must be 0", e.Offset, e.Got)
	case DefectCall:
		return fmt.Sprintf("zrlmpi header: byte %d is 0x%02x, but the calls are 0 to %d", e.Offset, e.Got, numCalls-1)
	case DefectType:
		return fmt.Sprintf("zrlmpi header: byte %d is 0x%02x, but the packet types are 1 to %d", e.Offset, e.Got,
			numTypes-1)
	case DefectLength:
		return fmt.Sprintf("zrlmpi packet: %d bytes follow the header, which says %d", e.Want32, e.Got32)
	case DefectChecksum:
		return fmt.Sprintf("zrlmpi packet: the checksum is 0x%08x, but that of its bytes is 0x%08x: it was corrupted "+
			"in transit", e.Got32, e.Want32)
	}
	return "zrlmpi header: " + e.Kind.String()
}

// Is reports whether target is a HeaderError with the same kind of defect.
func (e *HeaderError) Is(target error) bool {
	t, ok := target.(*HeaderError)
	return ok && t.Kind == e.Kind
}
