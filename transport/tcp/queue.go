package tcp

import (
	"net/netip"
	"sync"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// maxBroken is the maximum number of queued mpe.RxBroken per peer, or for all unknown addresses together. Further ones
// are dropped.
const maxBroken = 8

// queue holds the events of all peers until Recv returns them. Its length is bounded by the number of chunks of each
// peer, because every event needs a chunk or a part of one. The exceptions are mpe.RxBroken, mpe.RxPeerDied (at most
// one per connection), and mpe.RxUnreachable.
type queue struct {
	mu sync.Mutex
	// events[head:] are pending.
	events []event
	head   int
	// ready contains an element if the queue may not be empty.
	ready chan struct{}
}

// event is an event that Recv has not returned yet.
type event struct {
	kind  mpe.RxKind
	peer  *peer
	from  netip.AddrPort
	chunk *chunk // nil for mpe.RxBroken, mpe.RxPeerDied and mpe.RxUnreachable
	// start and end delimit an mpe.RxDatagram within its chunk, which several packets may share. An event of any other
	// kind uses the whole chunk.
	start, end int
	// reason is the text of an mpe.RxUnreachable or mpe.RxBroken.
	reason string
}

// bytes returns the data of the event.
func (ev *event) bytes() []byte {
	switch {
	case ev.kind == mpe.RxUnreachable, ev.kind == mpe.RxBroken:
		return []byte(ev.reason)
	case ev.chunk == nil:
		return nil
	case ev.kind == mpe.RxDatagram:
		return ev.chunk.buf[ev.start:ev.end:ev.end]
	}
	return ev.chunk.buf[:ev.chunk.len]
}

// chunk is a receive buffer. It moves from its peer's free list through the queue to Recv's caller, and back.
type chunk struct {
	buf [chunkLen]byte
	len int
	// events is the number of pending events that use the chunk.
	events int
}

// push appends ev.
func (q *queue) push(ev event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(ev)
}

// pushOnce appends ev, unless an event of the same kind and peer is pending.
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

// pushBroken appends an mpe.RxBroken, unless maxBroken are pending.
func (q *queue) pushBroken(p *peer, from netip.AddrPort, reason string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.brokenQueued < maxBroken {
		p.brokenQueued++
		q.add(event{kind: mpe.RxBroken, peer: p, from: from, reason: reason})
	}
}

// add appends ev; the caller holds mu. Later payload of the peer may extend ev (appendToTail) until another event of
// the peer follows.
func (q *queue) add(ev event) {
	if len(q.events) == cap(q.events) && q.head > 0 {
		n := copy(q.events, q.events[q.head:])
		clear(q.events[n:])
		q.events, q.head = q.events[:n], 0
	}
	q.events = append(q.events, ev)
	ev.peer.tailChunk = nil
	if ev.kind == mpe.RxPayload || ev.kind == mpe.RxDatagram {
		ev.peer.tailChunk = ev.chunk
	}
	if ev.chunk != nil {
		ev.chunk.events++
	}
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// appendToTail copies bytes from b to the last payload of p in the queue, if that is still pending, until its chunk is
// full. It returns the number of bytes copied. Without it, a message that arrives in small pieces would use up the
// chunks.
func (q *queue) appendToTail(p *peer, b []byte) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.tailChunk == nil {
		return 0
	}
	n := copy(p.tailChunk.buf[p.tailChunk.len:], b)
	p.tailChunk.len += n
	return n
}

// addPacket queues a packet in the chunk that holds the last packet from p. It returns false if that packet is no
// longer pending or the chunk is full. Without it, small packets would use up the chunks.
func (q *queue) addPacket(p *peer, from netip.AddrPort, b []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	ch := p.tailChunk
	if ch == nil || len(b) > chunkLen-ch.len {
		return false
	}
	start := ch.len
	ch.len += copy(ch.buf[start:], b)
	q.add(event{kind: mpe.RxDatagram, peer: p, from: from, chunk: ch, start: start, end: ch.len})
	return true
}

// pop moves the oldest events to out and returns their number.
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
			ev.peer.brokenQueued--
		}
		if ev.chunk != nil && ev.chunk == ev.peer.tailChunk {
			ev.peer.tailChunk = nil
		}
	}
	return n
}
