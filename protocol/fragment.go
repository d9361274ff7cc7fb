package protocol

// Shape describes how a sender fragments a DATA message into datagrams: the first has the header and the start of the
// payload, all further ones have payload only. The zero Shape is not useful; start from CPUShape or FPGAShape.
type Shape struct {
	// MaxDatagram is the largest datagram in bytes, header included.
	MaxDatagram int
	// PadLines pads the payload with zero bytes to whole lines of 8 bytes, as the FPGA does. A message of 0 words is
	// then sent with one line.
	PadLines bool
	// LongTail allows the last datagram to exceed MaxDatagram by one line, if this saves a datagram of a single line
	// and the message ends on the second half of a 16-byte word. The MPE's output queue does this when words mod 708 is
	// 347 or 348, and sends 1424 bytes.
	LongTail bool
}

// LineLen is the width of the FPGA's data path in bytes.
const LineLen = 8

// CPUShape returns the Shape of upstream's CPU library, which we use towards all peers: full datagrams of 1416 bytes,
// and the rest in the last one. All but the last have a multiple of 8 bytes of payload, as an FPGA requires.
func CPUShape() Shape { return Shape{MaxDatagram: MaxDatagram} }

// FPGAShape returns the Shape of the deployed MPE. longTail is false for a shell that splits the 1424-byte datagram
// into 1416 + 8.
func FPGAShape(longTail bool) Shape {
	return Shape{MaxDatagram: MaxDatagram, PadLines: true, LongTail: longTail}
}

// PayloadBytes returns the number of payload bytes on the wire, padding included, of a message of the given number of
// words.
func (s Shape) PayloadBytes(words uint32) int64 {
	n := int64(words) * WordLen
	if s.PadLines {
		n = (n + LineLen - 1) / LineLen * LineLen
		if n == 0 {
			n = LineLen
		}
	}
	return n
}

// Next returns the length of the payload in the datagram that starts at payload offset off, given the total from
// PayloadBytes. It returns 0 when off is past the last datagram. The first datagram of an empty message is at offset 0
// and has 0 bytes of payload.
func (s Shape) Next(off, total int64) int64 {
	room := int64(s.MaxDatagram)
	if off == 0 {
		room -= HeaderLen
	}
	left := total - off
	if left <= room {
		return max(left, 0)
	}
	// The MPE's queue moves 16 bytes at a time and ends a datagram at 8 of them; it does not split a message whose last
	// 16-byte word straddles the boundary.
	if s.LongTail && left == room+LineLen && (total+HeaderLen)%(2*LineLen) == 0 {
		return left
	}
	return room
}

// Skips reports whether a datagram with n bytes of payload, padding included, ends a message of which left bytes are
// outstanding, so that one or more full datagrams before it are missing.
func (s Shape) Skips(left, n int64) bool {
	padding := -left & (LineLen - 1)
	full := int64(s.MaxDatagram)
	return 0 < n && n < left && n != full && n <= full+LineLen && ((left-n)%full == 0 || (left+padding-n)%full == 0)
}

// Datagrams returns the number of datagrams of a message of the given number of words.
func (s Shape) Datagrams(words uint32) int64 {
	total := s.PayloadBytes(words)
	first := s.Next(0, total)
	rest := total - first
	if rest == 0 {
		return 1
	}
	n := 1 + (rest+int64(s.MaxDatagram)-1)/int64(s.MaxDatagram)
	// A long tail saves a datagram with a single line.
	if s.LongTail && rest%int64(s.MaxDatagram) == LineLen && rest > LineLen &&
		(total+HeaderLen)%(2*LineLen) == 0 {
		n--
	}
	return n
}
