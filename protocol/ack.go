package protocol

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Sizes of the payload of an ACK of the extended profile (E25).
const (
	// AckLen is the length in bytes of the payload without ranges.
	AckLen = 12
	// AckRangeLen is the length in bytes of a range.
	AckRangeLen = 8
	// MaxAckRanges is the most ranges that an ACK carries.
	MaxAckRanges = 32
)

// AckInfo is the payload of an ACK of the extended profile.
type AckInfo struct {
	// MessageLimit is the number of the first message that may not be sent
	// yet; EagerLimit is how many eager bytes may be sent in all since the
	// session began, modulo 2³² (E20).
	MessageLimit, EagerLimit uint32
	// Delay is how long before this ACK the newest packet that it
	// acknowledges had arrived. The wire has whole microseconds, up to 71
	// minutes.
	Delay time.Duration
	// Ranges are the packets beyond Acknowledged that have arrived,
	// ascending.
	Ranges []Range
}

// Range is a run of packet numbers, from First up to but not including End.
type Range struct{ First, End uint32 }

// String prints the range as "14..16", or "14" for a single packet.
func (r Range) String() string {
	if r.End == r.First+1 {
		return fmt.Sprint(r.First)
	}
	return fmt.Sprintf("%d..%d", r.First, r.End)
}

// String prints the payload as zrlctl does:
// "messages<65537 eager<1048576 delay=250µs arrived=14..16,20".
func (a *AckInfo) String() string {
	s := fmt.Sprintf("messages<%d eager<%d delay=%dµs", a.MessageLimit, a.EagerLimit, a.Delay.Microseconds())
	for i, r := range a.Ranges {
		if i == 0 {
			s += " arrived="
		} else {
			s += ","
		}
		s += r.String()
	}
	return s
}

// AppendAck appends the payload of an ACK to b and returns the extended slice.
// Of more than MaxAckRanges ranges the first are sent; a Delay out of range
// becomes the nearest that the wire can carry.
func AppendAck(b []byte, a *AckInfo) []byte {
	b = binary.LittleEndian.AppendUint32(b, a.MessageLimit)
	b = binary.LittleEndian.AppendUint32(b, a.EagerLimit)
	b = binary.LittleEndian.AppendUint32(b, uint32(min(max(a.Delay.Microseconds(), 0), 1<<32-1)))
	for _, r := range a.Ranges[:min(len(a.Ranges), MaxAckRanges)] {
		b = binary.LittleEndian.AppendUint32(b, r.First)
		b = binary.LittleEndian.AppendUint32(b, r.End)
	}
	return b
}

// ParseAck decodes the payload of an ACK. The ranges are appended to ranges[:0],
// so that a caller with room for MaxAckRanges costs no allocation. It is false
// for a payload of another length, for more than MaxAckRanges ranges, for one
// that is empty, and for ranges that do not ascend.
func ParseAck(payload []byte, ranges []Range) (AckInfo, bool) {
	rest := len(payload) - AckLen
	if rest < 0 || rest%AckRangeLen != 0 || rest > MaxAckRanges*AckRangeLen {
		return AckInfo{}, false
	}
	a := AckInfo{
		MessageLimit: binary.LittleEndian.Uint32(payload),
		EagerLimit:   binary.LittleEndian.Uint32(payload[4:]),
		Delay:        time.Duration(binary.LittleEndian.Uint32(payload[8:])) * time.Microsecond,
		Ranges:       ranges[:0],
	}
	// Numbers are distances modulo 2³² (E4), here from the first range on.
	var first, last uint32
	for b := payload[AckLen:]; len(b) > 0; b = b[AckRangeLen:] {
		r := Range{First: binary.LittleEndian.Uint32(b), End: binary.LittleEndian.Uint32(b[4:])}
		if len(a.Ranges) == 0 {
			first, last = r.First, r.First
		}
		begin, end := r.First-first, r.End-first
		if begin < last-first || end <= begin || end > 1<<31 {
			return AckInfo{}, false
		}
		last = r.End
		a.Ranges = append(a.Ranges, r)
	}
	return a, true
}
