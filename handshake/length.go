package handshake

import (
	"slices"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// lengthFits reports whether payload b has a valid length at offset off of a message of total bytes. All datagrams
// except the last are full, including the first part of a long datagram that the FPGA's shell has split. The last
// datagram contains the rest, and may be padded with zeros. Other padding is invalid, so that a second copy of a full
// datagram is not mistaken for a padded last one. A message of 0 words may contain one line of any content, because the
// FPGA's wrapper sends the first words of the caller's buffer.
func (p *Pair) lengthFits(off, total int64, b []byte) bool {
	full := int64(p.cfg.Shape.MaxDatagram)
	if off == 0 {
		full -= protocol.HeaderLen
	}
	n, left := int64(len(b)), total-off
	if n < left || n > full+protocol.LineLen {
		return n == full && n < left
	}
	if n > full && !p.longTail(off, total, n) {
		return false
	}
	if total == 0 {
		return n <= protocol.LineLen
	}
	return n-left <= protocol.LineLen-protocol.WordLen &&
		!slices.ContainsFunc(b[left:], func(c byte) bool { return c != 0 })
}

// longTail reports whether total bytes is the length of a message that the MPE ends with a datagram of n bytes at
// offset off, longer than a full datagram. Among the lengths for which this is possible, the MPE does it for every
// second one. For example, a late copy of DATA of 347 words, which fits into one datagram, cannot be the end of a
// message of 701 words.
func (p *Pair) longTail(off, total, n int64) bool {
	mpe := protocol.FPGAShape(true)
	mpe.MaxDatagram = p.cfg.Shape.MaxDatagram
	return mpe.PayloadAt(off, mpe.PayloadBytes(uint32(total/protocol.WordLen))) == n
}
