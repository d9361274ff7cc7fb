package protocol

// Shape describes how a sender fragments a DATA message into datagrams. The first datagram consists of the header and
// the start of the payload, and all further ones of payload only. The zero Shape is not usable; use CPUShape or
// FPGAShape.
type Shape struct {
	// MaxDatagram is the maximum length of a datagram in bytes, including the header.
	MaxDatagram int
	// PadLines pads the payload with zero bytes to whole lines of 8 bytes, as the FPGA does. A message of 0 words then
	// consists of one line of padding.
	PadLines bool
	// LongTail allows the last datagram to exceed MaxDatagram by one line, if this avoids a further datagram of a single
	// line and the message ends in the second half of a 16-byte word. The MPE's output queue does this if the number
	// of words modulo 708 is 347 or 348, and then sends a datagram of 1424 bytes.
	LongTail bool
}

// LineLen is the width of the FPGA's data path in bytes.
const LineLen = 8

// CPUShape returns the Shape of upstream's CPU library, which zrlmpid uses for all peers: datagrams of 1416 bytes, and
// a last one with the rest. The payload of every datagram except the last is a multiple of 8 bytes, as an FPGA
// requires.
func CPUShape() Shape { return Shape{MaxDatagram: MaxDatagram} }

// FPGAShape returns the Shape that the deployed MPE uses. Set longTail to false for a shell that splits a datagram of
// 1424 bytes into one of 1416 and one of 8.
func FPGAShape(longTail bool) Shape {
	return Shape{MaxDatagram: MaxDatagram, PadLines: true, LongTail: longTail}
}

// PayloadBytes returns the number of payload bytes on the wire, including padding, for a message of the given number of
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

// PayloadAt returns the number of payload bytes in the datagram that starts at offset off of the payload. The parameter
// total is the result of PayloadBytes. PayloadAt returns 0 if off is past the last datagram, and also for the only
// datagram of an empty message.
func (s Shape) PayloadAt(off, total int64) int64 {
	room := int64(s.MaxDatagram)
	if off == 0 {
		room -= HeaderLen
	}
	left := total - off
	if left <= room {
		return max(left, 0)
	}
	// The MPE's queue moves 16 bytes at a time, and a datagram ends in the middle of them. The queue does not split a
	// message whose last 16-byte word straddles this boundary.
	if s.LongTail && left == room+LineLen && (total+HeaderLen)%(2*LineLen) == 0 {
		return left
	}
	return room
}

// ImpliesGap reports whether a datagram with n bytes of payload, including padding, must be the last one of a message,
// although left bytes of the message are outstanding. One or more full datagrams before it are then missing.
func (s Shape) ImpliesGap(left, n int64) bool {
	padding := -left & (LineLen - 1)
	full := int64(s.MaxDatagram)
	return 0 < n && n < left && n != full && n <= full+LineLen && ((left-n)%full == 0 || (left+padding-n)%full == 0)
}

// NumDatagrams returns the number of datagrams that a message of the given number of words needs.
func (s Shape) NumDatagrams(words uint32) int64 {
	total := s.PayloadBytes(words)
	first := s.PayloadAt(0, total)
	rest := total - first
	if rest == 0 {
		return 1
	}
	n := 1 + (rest+int64(s.MaxDatagram)-1)/int64(s.MaxDatagram)
	// The last datagram may be longer, so that no further datagram is needed for a single line.
	if s.LongTail && rest%int64(s.MaxDatagram) == LineLen && rest > LineLen &&
		(total+HeaderLen)%(2*LineLen) == 0 {
		n--
	}
	return n
}
