package protocol

import (
	"encoding/binary"
	"fmt"
	"time"
)

// These constants are the sizes of the payload of an ACK in the extended profile (E25).
const (
	// AckLen is the length in bytes of an ACK's payload if it contains no ranges.
	AckLen = 12
	// AckRangeLen is the length in bytes of each range in an ACK's payload.
	AckRangeLen = 8
	// MaxAckRanges is the maximum number of ranges in an ACK.
	MaxAckRanges = 32
)

// AckInfo is the decoded payload of an ACK in the extended profile.
type AckInfo struct {
	// MessageLimit is the number of the first message that the receiver of the ACK may not send yet. EagerLimit is the
	// total number of eager bytes that the receiver may send in the session, modulo 2³² (E20).
	MessageLimit, EagerLimit uint32
	// Delay is the time from the arrival of the newest acknowledged packet to the sending of this ACK. On the wire it
	// is a whole number of microseconds, up to 71 minutes.
	Delay time.Duration
	// Ranges lists, in ascending order, the packets that were received beyond the first missing one.
	Ranges []Range
}

// Range is a range of consecutive packet numbers, from First up to but excluding End.
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

// AppendAck appends the payload of an ACK to b and returns the extended slice. It encodes at most the first
// MaxAckRanges ranges, and clamps Delay to the values that fit on the wire.
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

// ParseAck decodes the payload of an ACK. It appends the ranges to ranges[:0], so that a slice with a capacity of
// MaxAckRanges avoids allocation. It returns false if the length is invalid, if there are more than MaxAckRanges
// ranges, or if a range is empty or out of ascending order.
func ParseAck(payload []byte, ranges []Range) (AckInfo, bool) {
	rest := len(payload) - AckLen
	if rest < 0 || rest%AckRangeLen != 0 || rest > MaxAckRanges*AckRangeLen {
		return AckInfo{}, false
	}
	ackInfo := AckInfo{
		MessageLimit: binary.LittleEndian.Uint32(payload),
		EagerLimit:   binary.LittleEndian.Uint32(payload[4:]),
		Delay:        time.Duration(binary.LittleEndian.Uint32(payload[8:])) * time.Microsecond,
		Ranges:       ranges[:0],
	}
	// Compare numbers by their distance modulo 2³² from the start of the first range (E4).
	var first, last uint32
	for b := payload[AckLen:]; len(b) > 0; b = b[AckRangeLen:] {
		r := Range{First: binary.LittleEndian.Uint32(b), End: binary.LittleEndian.Uint32(b[4:])}
		if len(ackInfo.Ranges) == 0 {
			first, last = r.First, r.First
		}
		begin, end := r.First-first, r.End-first
		if begin < last-first || end <= begin || end > 1<<31 {
			return AckInfo{}, false
		}
		last = r.End
		ackInfo.Ranges = append(ackInfo.Ranges, r)
	}
	return ackInfo, true
}
