package capture

import (
	"bytes"
	"container/list"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

// tcpStream is one direction of a TCP connection.
type tcpStream struct {
	flow tcpFlow
	// nextSeq is the sequence number of the next byte to deliver. first is the sequence number of the first byte after
	// the SYN.
	nextSeq, first uint32
	synSeen        bool
	// isNew is true until the first unit is delivered.
	isNew bool
	// pending holds the segments after a hole, sorted by sequence number. heldBytes is the memory that they use, in
	// bytes.
	pending   []tcpSegment
	heldBytes int
	// holeSince is the time of the first segment after the hole. holeElement is the element for this stream in the list
	// reassembler.holes.
	holeSince           time.Time
	holeElement, recent *list.Element
}

// nextUnit converts a segment to the next unit. gap is the number of missing bytes between the previous segment and
// this one.
func (s *tcpStream) nextUnit(seg *tcpSegment, gap int) pcapng.Unit {
	unit := pcapng.Unit{
		Packet: seg.packet, Time: seg.time, Src: s.flow.src, Dst: s.flow.dst, Proto: pcapng.TCP,
		Data: seg.data, Truncated: seg.unrecorded, Gap: gap, Restart: s.isNew,
	}
	s.isNew = false
	s.nextSeq = seg.seq + uint32(seg.length())
	return unit
}

// insertSegment stores a copy of a segment. It returns false, and stores nothing, if a stored segment already covers
// it.
func (s *tcpStream) insertSegment(seg tcpSegment) bool {
	// Search from the end: even after a hole, most segments are in order.
	i := len(s.pending)
	for i > 0 && int32(s.pending[i-1].seq-seg.seq) > 0 {
		i--
	}
	if i > 0 && s.pending[i-1].covers(&seg) {
		return false
	}
	if i < len(s.pending) && s.pending[i].covers(&seg) {
		return false
	}
	seg.data = bytes.Clone(seg.data)
	s.pending = slices.Insert(s.pending, i, seg)
	s.heldBytes += seg.memoryCost()
	return true
}

// covers reports whether segment s makes segment t redundant: s must contain all bytes of t, and all recorded bytes of
// t must be recorded in s as well.
func (s *tcpSegment) covers(t *tcpSegment) bool {
	off := int(int32(t.seq - s.seq))
	return off >= 0 && off+len(t.data) <= len(s.data) && off+t.length() <= s.length()
}
