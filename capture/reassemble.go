package capture

import (
	"container/list"
	"net/netip"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

// Bounds of what is kept of TCP streams. A hole in a stream is a segment that
// came out of order, or that the recording does not have; which of them it is
// shows when it is filled, or when one of these bounds is reached.
const (
	// maxStreams is room for the two directions of 128 ranks, all connected
	// to each other, at a few hundred bytes each.
	maxStreams = 1 << 15
	// maxHeldStream is a window's worth of bytes behind a hole, and
	// maxHeldTotal the same for all streams.
	maxHeldStream = 2 << 20
	maxHeldTotal  = 8 << 20
	// segmentCost is what keeping a segment costs besides its bytes.
	segmentCost = 128
	// holeAge is how long a hole may stay, by the packets' times. The
	// retransmission that fills it comes within a few time-outs.
	holeAge = 10 * time.Second
	// maxJump is farther than a sequence number can be ahead or behind in
	// any window that is in use: a new connection without its SYN.
	maxJump = 64 << 20
)

// tcpFlow is one direction of a TCP connection.
type tcpFlow struct {
	src, dst netip.AddrPort
}

// tcpSegment is what a packet carries of a stream.
type tcpSegment struct {
	seq uint32
	// data are the bytes that were recorded, and missing is how many follow
	// that were not.
	data    []byte
	missing int
	packet  int64
	time    time.Time
}

// flowSegment is a segment and the stream that it belongs to.
type flowSegment struct {
	tcpFlow
	tcpSegment
	syn bool
}

func (s *tcpSegment) length() int { return len(s.data) + s.missing }
func (s *tcpSegment) cost() int   { return len(s.data) + segmentCost }

// trim takes n bytes off the front.
func (s *tcpSegment) trim(n int) {
	s.seq += uint32(n)
	k := min(n, len(s.data))
	s.data = s.data[k:]
	s.missing -= n - k
}

// reassembler puts TCP segments in order, each direction for itself, in memory
// that does not grow with the recording.
type reassembler struct {
	streams map[tcpFlow]*tcpStream
	// recent has the streams in the order of their last packets, oldest
	// first.
	recent list.List
	// holes has the streams that have holes, oldest hole first.
	holes list.List
	// held is the cost of all segments behind holes.
	held int
	// ready are units that are complete and not yet given out, from next on.
	ready []pcapng.Unit
	next  int
}

func newReassembler() *reassembler {
	return &reassembler{streams: make(map[tcpFlow]*tcpStream)}
}

// add takes a segment. If the verdict is gotUnit it was in order, and is in u;
// more units may be there to pop, before this one or after it.
func (r *reassembler) add(f tcpFlow, seg tcpSegment, syn bool, u *pcapng.Unit) verdict {
	s := r.stream(f, &seg, syn)
	if syn {
		seg.seq++
	}
	if seg.length() == 0 {
		return skipNoData
	}
	ahead := int(int32(seg.seq - s.next))
	if ahead > maxJump || ahead < -maxJump {
		r.restart(s, seg.seq)
		ahead = 0
	}
	if ahead+seg.length() <= 0 {
		return skipRetransmission
	}
	if ahead > 0 {
		return r.hold(s, seg)
	}
	seg.trim(-ahead)
	in := s.unit(&seg, 0)
	if len(r.ready) > 0 {
		// Units of an earlier connection go first.
		in.Data = append([]byte(nil), in.Data...)
		r.ready = append(r.ready, in)
		r.drain(s, &seg)
		return heldBack
	}
	*u = in
	r.drain(s, &seg)
	return gotUnit
}

// stream finds the stream of a flow, or makes it. A SYN starts it anew, unless
// that SYN was seen before.
func (r *reassembler) stream(f tcpFlow, seg *tcpSegment, syn bool) *tcpStream {
	first := seg.seq
	if syn {
		first++
	}
	s := r.streams[f]
	switch {
	case s == nil:
		if len(r.streams) == maxStreams {
			r.evict(r.recent.Front().Value.(*tcpStream))
		}
		s = &tcpStream{flow: f, next: first, fresh: true}
		s.recent = r.recent.PushBack(s)
		r.streams[f] = s
	case syn && !(s.synSeen && s.first == first):
		r.restart(s, first)
	}
	if syn {
		s.synSeen, s.first = true, first
	}
	r.recent.MoveToBack(s.recent)
	return s
}

// restart voids what is known of a stream, and lets it begin at seq.
func (r *reassembler) restart(s *tcpStream, seq uint32) {
	r.flushAll(s)
	s.next, s.fresh, s.synSeen = seq, true, false
}

// evict forgets a stream, to make room.
func (r *reassembler) evict(s *tcpStream) {
	r.flushAll(s)
	r.recent.Remove(s.recent)
	delete(r.streams, s.flow)
}

// hold keeps a segment that is behind a hole, until the hole is filled or
// skipped.
func (r *reassembler) hold(s *tcpStream, seg tcpSegment) verdict {
	if !s.insert(seg) {
		return skipRetransmission
	}
	r.held += seg.cost()
	if s.hole == nil {
		s.hole = r.holes.PushBack(s)
		s.holeSince = seg.time
	}
	for s.held > maxHeldStream || (r.held > maxHeldTotal && len(s.pending) > 0) {
		r.skipHole(s)
	}
	return heldBack
}

// drain gives out the segments that are in order now. They take the packet and
// time of the segment that filled the hole; if by is nil the hole was skipped,
// and they keep their own.
func (r *reassembler) drain(s *tcpStream, by *tcpSegment) {
	moved := false
	for len(s.pending) > 0 {
		seg := s.pending[0]
		ahead := int(int32(seg.seq - s.next))
		if ahead > 0 {
			break
		}
		moved = true
		r.take(s)
		if ahead+seg.length() <= 0 {
			continue
		}
		seg.trim(-ahead)
		if by != nil {
			seg.packet, seg.time = by.packet, by.time
		}
		r.ready = append(r.ready, s.unit(&seg, 0))
	}
	r.redate(s, moved)
}

// take removes the first segment of a stream from those that are held.
func (r *reassembler) take(s *tcpStream) tcpSegment {
	seg := s.pending[0]
	s.pending[0] = tcpSegment{}
	s.pending = s.pending[1:]
	s.held -= seg.cost()
	r.held -= seg.cost()
	return seg
}

// redate puts a stream in its place among those with holes after its segments
// have moved.
func (r *reassembler) redate(s *tcpStream, moved bool) {
	switch {
	case s.hole == nil || !moved:
	case len(s.pending) == 0:
		r.holes.Remove(s.hole)
		s.hole, s.pending = nil, nil
	default:
		s.holeSince = s.pending[0].time
		r.holes.MoveToBack(s.hole)
	}
}

// skipHole gives out what follows a stream's first hole, with a Gap.
func (r *reassembler) skipHole(s *tcpStream) {
	seg := r.take(s)
	gap := int(seg.seq - s.next)
	r.ready = append(r.ready, s.unit(&seg, gap))
	r.drain(s, nil)
	r.redate(s, true)
}

func (r *reassembler) flushAll(s *tcpStream) {
	for len(s.pending) > 0 {
		r.skipHole(s)
	}
}

// expire skips the holes that are too old.
func (r *reassembler) expire(now time.Time) {
	for e := r.holes.Front(); e != nil; e = r.holes.Front() {
		s := e.Value.(*tcpStream)
		if now.Sub(s.holeSince) <= holeAge {
			return
		}
		r.skipHole(s)
	}
}

// skipAll skips all holes, at the end of the recording.
func (r *reassembler) skipAll() {
	for e := r.holes.Front(); e != nil; e = r.holes.Front() {
		r.flushAll(e.Value.(*tcpStream))
	}
}

// pop fills in a unit that is ready, and reports whether there was one.
func (r *reassembler) pop(u *pcapng.Unit) bool {
	if r.next == len(r.ready) {
		return false
	}
	*u = r.ready[r.next]
	r.ready[r.next] = pcapng.Unit{}
	if r.next++; r.next == len(r.ready) {
		r.ready, r.next = r.ready[:0], 0
	}
	return true
}
