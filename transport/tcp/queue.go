package tcp

import (
	"net/netip"
	"sync"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// maxBroken is how many mpe.RxBroken of one peer, or of all unknown
// addresses together, wait for Recv at most; more are not reported.
const maxBroken = 8

// queue holds the arrivals of all peers until Recv takes them. Its length is
// bounded by the chunks of each peer: all have one, or a part of one, but an
// mpe.RxBroken, an mpe.RxGone, of which there is one for a connection at most, and an mpe.RxUnreachable.
type queue struct {
	mu sync.Mutex
	// events[head:] wait.
	events []event
	head   int
	// ready has an element if there may be something to take.
	ready chan struct{}
}

// event is an arrival that Recv has not returned yet.
type event struct {
	kind  mpe.RxKind
	peer  *peer
	from  netip.AddrPort
	chunk *chunk // nil for mpe.RxBroken, mpe.RxGone and mpe.RxUnreachable
	// start and end are the place in the chunk of an mpe.RxDatagram,
	// which may share it with others; what else arrives has one of its own.
	start, end int
	// reason of an mpe.RxUnreachable.
	reason string
}

// bytes returns what arrived.
func (ev *event) bytes() []byte {
	switch {
	case ev.kind == mpe.RxUnreachable:
		return []byte(ev.reason)
	case ev.chunk == nil:
		return nil
	case ev.kind == mpe.RxDatagram:
		return ev.chunk.buf[ev.start:ev.end:ev.end]
	}
	return ev.chunk.buf[:ev.chunk.len]
}

// chunk is a buffer that goes from its peer's free list over the queue to Recv's
// caller and back.
type chunk struct {
	buf [chunkLen]byte
	len int
	// events is how many of them there are on the way.
	events int
}

// push puts ev at the end.
func (q *queue) push(ev event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(ev)
}

// pushOnce puts ev at the end, unless one of that kind and peer waits.
func (q *queue) pushOnce(ev event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, waits := range q.events[q.head:] {
		if waits.kind == ev.kind && waits.peer == ev.peer {
			return
		}
	}
	q.add(ev)
}

// pushBroken puts an mpe.RxBroken at the end, unless there are many already.
func (q *queue) pushBroken(p *peer, from netip.AddrPort) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.broken < maxBroken {
		p.broken++
		q.add(event{kind: mpe.RxBroken, peer: p, from: from})
	}
}

func (q *queue) add(ev event) {
	if len(q.events) == cap(q.events) && q.head > 0 {
		n := copy(q.events, q.events[q.head:])
		clear(q.events[n:])
		q.events, q.head = q.events[:n], 0
	}
	q.events = append(q.events, ev)
	ev.peer.tail = nil
	if ev.kind == mpe.RxPayload || ev.kind == mpe.RxDatagram {
		ev.peer.tail = ev.chunk
	}
	if ev.chunk != nil {
		ev.chunk.events++
	}
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// extend adds the start of b to the payload that p has last put on the queue, if
// that still waits and has room, and returns how much it took. Without it, a
// message that arrives in small pieces would use up the chunks.
func (q *queue) extend(p *peer, b []byte) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.tail == nil {
		return 0
	}
	n := copy(p.tail.buf[p.tail.len:], b)
	p.tail.len += n
	return n
}

// addPacket puts a packet at the end, in the chunk of the packet that p has last
// put on the queue, if that still waits and has room; otherwise it reports false.
// Without it, small packets would use up the chunks.
func (q *queue) addPacket(p *peer, from netip.AddrPort, b []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	ch := p.tail
	if ch == nil || len(b) > chunkLen-ch.len {
		return false
	}
	start := ch.len
	ch.len += copy(ch.buf[start:], b)
	q.add(event{kind: mpe.RxDatagram, peer: p, from: from, chunk: ch, start: start, end: ch.len})
	return true
}

// pop moves the first events to out and returns how many.
func (q *queue) pop(out []event) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := copy(out, q.events[q.head:])
	clear(q.events[q.head : q.head+n])
	q.head += n
	if q.head == len(q.events) {
		q.events, q.head = q.events[:0], 0
	}
	for _, ev := range out[:n] {
		if ev.kind == mpe.RxBroken {
			ev.peer.broken--
		}
		if ev.chunk != nil && ev.chunk == ev.peer.tail {
			ev.peer.tail = nil
		}
	}
	return n
}
