package tcp

import (
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// takeChunk returns an empty chunk. It reuses a free chunk, allocates one if there are fewer than maxChunks, or waits
// for a chunk to be freed. It returns nil if the link is closed first.
func (p *peer) takeChunk(l *link) *chunk {
	select {
	case ch := <-p.freeChunks:
		return ch
	default:
	}
	if p.chunksMade < maxChunks {
		p.chunksMade++
		return &chunk{}
	}
	select {
	case ch := <-p.freeChunks:
		return ch
	case <-l.closing:
		return nil
	}
}

// enqueue queues data that arrived on l. b must fit in a chunk. enqueue returns false if l is closed before a chunk is
// free.
func (c *Conn) enqueue(p *peer, l *link, kind mpe.RxKind, b []byte) bool {
	if kind == mpe.RxPayload {
		if b = b[c.queue.appendToTail(p, b):]; len(b) == 0 {
			return true
		}
	}
	if kind == mpe.RxDatagram && c.queue.addPacket(p, l.from, b) {
		return true
	}
	ch := p.takeChunk(l)
	if ch == nil {
		return false
	}
	ch.len = copy(ch.buf[:], b)
	c.queue.push(event{kind: kind, peer: p, from: l.from, chunk: ch, end: ch.len})
	return true
}

// readLink queues the data that arrives on l. It returns when l is closed. worked reports whether the peer sent a
// packet, and err is the reason for the end.
func (c *Conn) readLink(p *peer, l *link) (worked bool, err error) {
	if p.profile == protocol.Extended {
		return c.readPackets(p, l)
	}
	frames := protocol.NewFrameReader(l, p.profile, c.cfg.MaxWords)
	for {
		frame, err := frames.Next()
		if err != nil {
			return worked, err
		}
		worked = true
		kind := mpe.RxHeader
		if frame.IsPayload {
			kind = mpe.RxPayload
		}
		if !c.enqueue(p, l, kind, frame.Bytes) {
			return worked, nil // l is closed, and its reason is set
		}
	}
}

// readPackets does the work of readLink for a peer of the extended profile.
func (c *Conn) readPackets(p *peer, l *link) (worked bool, err error) {
	var in reader
	for {
		packet, err := in.next()
		if err == nil && packet == nil {
			var n int
			n, err = l.Read(in.readBuffer())
			in.advance(n)
		}
		if err != nil {
			return worked, err
		}
		if packet == nil {
			continue
		}
		worked = true
		if !c.enqueue(p, l, mpe.RxDatagram, packet) {
			return worked, nil // l is closed, and its reason is set
		}
	}
}
