package capture

import (
	"container/list"
	"net/netip"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

// Limits on the memory for TCP streams. A hole in a stream is a segment that is either out of order or not in the
// recording. The reassembler holds the segments after it until the hole is filled or a limit is reached.
const (
	// maxStreams is enough for both directions of all connections between 128 ranks. A stream needs a few hundred
	// bytes.
	maxStreams = 1 << 15
	// maxHeldStream is the maximum number of bytes held after a stream's hole, about one TCP window. maxHeldTotal is
	// the maximum for all streams together.
	maxHeldStream = 2 << 20
	maxHeldTotal  = 8 << 20
	// segmentCost is the overhead of a held segment in bytes.
	segmentCost = 128
	// holeAge is the maximum lifetime of a hole, by the packets' time stamps. A retransmission would fill it within a
	// few timeouts.
	holeAge = 10 * time.Second
	// maxJump is larger than any TCP window in use, so that a larger jump of sequence numbers indicates a new
	// connection whose SYN was not recorded.
	maxJump = 64 << 20
)

// tcpFlow is one direction of a TCP connection.
type tcpFlow struct {
	src, dst netip.AddrPort
}

// tcpSegment is the part of a TCP stream that one packet carries.
type tcpSegment struct {
	seq uint32
	// data holds the recorded bytes. unrecorded is the number of unrecorded bytes after data.
	data       []byte
	unrecorded int
	packet     int64
	time       time.Time
}

// flowSegment is a segment and its stream.
type flowSegment struct {
	tcpFlow
	tcpSegment
	syn bool
}

// length is the length on the wire, which sequence numbers count. memoryCost is the memory that the segment occupies
// while it is held.
func (s *tcpSegment) length() int     { return len(s.data) + s.unrecorded }
func (s *tcpSegment) memoryCost() int { return len(s.data) + segmentCost }

// trim removes n bytes from the front.
func (s *tcpSegment) trim(n int) {
	s.seq += uint32(n)
	k := min(n, len(s.data))
	s.data = s.data[k:]
	s.unrecorded -= n - k
}

// reassembler puts the TCP segments of each direction in order, in bounded memory.
type reassembler struct {
	streams map[tcpFlow]*tcpStream
	// recent lists the streams by the time of their last packet, oldest first.
	recent list.List
	// holes lists the streams with holes, oldest hole first.
	holes list.List
	// heldBytes is the total memory, in bytes, of the segments held after holes.
	heldBytes int
	// ready[next:] holds the complete units not yet returned by pop.
	ready []pcapng.Unit
	next  int
}

func newReassembler() *reassembler {
	return &reassembler{streams: make(map[tcpFlow]*tcpStream)}
}

// addSegment adds a segment. If the segment is in order, addSegment stores it in unit and returns gotUnit. Even if it
// is not, further units may be ready for pop.
func (r *reassembler) addSegment(f tcpFlow, seg tcpSegment, syn bool, unit *pcapng.Unit) decodeResult {
	stream := r.getStream(f, &seg, syn)
	if syn {
		seg.seq++
	}
	if seg.length() == 0 {
		return skipNoData
	}
	ahead := int(int32(seg.seq - stream.nextSeq))
	if ahead > maxJump || ahead < -maxJump {
		r.restart(stream, seg.seq)
		ahead = 0
	}
	if ahead+seg.length() <= 0 {
		return skipRetransmission
	}
	if ahead > 0 {
		return r.holdSegment(stream, seg)
	}
	seg.trim(-ahead)
	in := stream.nextUnit(&seg, 0)
	if len(r.ready) > 0 {
		// Units of an earlier connection are still in ready, and must be delivered first.
		in.Data = append([]byte(nil), in.Data...)
		r.ready = append(r.ready, in)
		r.drainHeld(stream, &seg)
		return unitPending
	}
	*unit = in
	r.drainHeld(stream, &seg)
	return gotUnit
}

// getStream returns the stream of a flow, and creates it if necessary. A SYN restarts the stream, unless it duplicates
// the SYN that began the stream.
func (r *reassembler) getStream(f tcpFlow, seg *tcpSegment, syn bool) *tcpStream {
	first := seg.seq
	if syn {
		first++
	}
	stream := r.streams[f]
	switch {
	case stream == nil:
		if len(r.streams) == maxStreams {
			r.evict(r.recent.Front().Value.(*tcpStream))
		}
		stream = &tcpStream{flow: f, nextSeq: first, isNew: true}
		stream.recent = r.recent.PushBack(stream)
		r.streams[f] = stream
	case syn && !(stream.synSeen && stream.first == first):
		r.restart(stream, first)
	}
	if syn {
		stream.synSeen, stream.first = true, first
	}
	r.recent.MoveToBack(stream.recent)
	return stream
}

// restart flushes the segments that a stream holds, and restarts the stream at the sequence number seq.
func (r *reassembler) restart(s *tcpStream, seq uint32) {
	r.flushAll(s)
	s.nextSeq, s.isNew, s.synSeen = seq, true, false
}

// evict removes a stream to free memory.
func (r *reassembler) evict(s *tcpStream) {
	r.flushAll(s)
	r.recent.Remove(s.recent)
	delete(r.streams, s.flow)
}

// holdSegment keeps a segment after a hole until the hole is filled or skipped.
func (r *reassembler) holdSegment(stream *tcpStream, seg tcpSegment) decodeResult {
	if !stream.insertSegment(seg) {
		return skipRetransmission
	}
	r.heldBytes += seg.memoryCost()
	if stream.holeElement == nil {
		stream.holeElement = r.holes.PushBack(stream)
		stream.holeSince = seg.time
	}
	for stream.heldBytes > maxHeldStream || (r.heldBytes > maxHeldTotal && len(stream.pending) > 0) {
		r.skipHole(stream)
	}
	return unitPending
}

// drainHeld moves held segments that are now in order to ready. If a segment by filled the hole, the held segments get
// its packet number and time. If by is nil because the hole was skipped, they keep their own.
func (r *reassembler) drainHeld(stream *tcpStream, by *tcpSegment) {
	moved := false
	for len(stream.pending) > 0 {
		seg := stream.pending[0]
		ahead := int(int32(seg.seq - stream.nextSeq))
		if ahead > 0 {
			break
		}
		moved = true
		r.removeFirst(stream)
		if ahead+seg.length() <= 0 {
			continue
		}
		seg.trim(-ahead)
		if by != nil {
			seg.packet, seg.time = by.packet, by.time
		}
		r.ready = append(r.ready, stream.nextUnit(&seg, 0))
	}
	r.updateHole(stream, moved)
}

// removeFirst removes the first held segment of a stream.
func (r *reassembler) removeFirst(s *tcpStream) tcpSegment {
	seg := s.pending[0]
	s.pending[0] = tcpSegment{}
	s.pending = s.pending[1:]
	s.heldBytes -= seg.memoryCost()
	r.heldBytes -= seg.memoryCost()
	return seg
}

// updateHole updates the position of a stream in the list holes. moved is true if held segments of the stream were
// removed.
func (r *reassembler) updateHole(stream *tcpStream, moved bool) {
	switch {
	case stream.holeElement == nil || !moved:
	case len(stream.pending) == 0:
		r.holes.Remove(stream.holeElement)
		stream.holeElement, stream.pending = nil, nil
	default:
		stream.holeSince = stream.pending[0].time
		r.holes.MoveToBack(stream.holeElement)
	}
}

// skipHole skips the first hole of a stream. The field Gap of the unit after the hole is set to the length of the hole.
func (r *reassembler) skipHole(s *tcpStream) {
	seg := r.removeFirst(s)
	gap := int(seg.seq - s.nextSeq)
	r.ready = append(r.ready, s.nextUnit(&seg, gap))
	r.drainHeld(s, nil)
	r.updateHole(s, true)
}

// flushAll delivers all held segments of a stream, and skips the holes between them.
func (r *reassembler) flushAll(s *tcpStream) {
	for len(s.pending) > 0 {
		r.skipHole(s)
	}
}

// expire skips holes older than holeAge.
func (r *reassembler) expire(now time.Time) {
	for e := r.holes.Front(); e != nil; e = r.holes.Front() {
		s := e.Value.(*tcpStream)
		if now.Sub(s.holeSince) <= holeAge {
			return
		}
		r.skipHole(s)
	}
}

// skipAll skips all remaining holes in all streams. It is called at the end of the recording.
func (r *reassembler) skipAll() {
	for e := r.holes.Front(); e != nil; e = r.holes.Front() {
		r.flushAll(e.Value.(*tcpStream))
	}
}

// pop stores the next ready unit in u. It returns false if no unit is ready.
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
