package core

import "github.com/zrlmpi/zrlmpid/extended"

// discardBuffer is memory for payload that nobody needs: payload of packets that the state machine is going to drop,
// mostly duplicates.
type discardBuffer struct{ buf []byte }

// grow returns n bytes of the buffer. The next call may return the same bytes.
func (s *discardBuffer) grow(n int) []byte {
	if len(s.buf) < n {
		s.buf = make([]byte, n)
	}
	return s.buf[:n]
}

// fetch copies the payload of a packet from its sender's memory directly to its destination, and returns the payload,
// or nil if the packet is lost.
//
// The caller holds the lock, so that no one reuses the buffer during the copy; the transport does not block. fetch
// writes only bytes that are still missing, because the sender's memory may change once a packet is acknowledged.
func (l *extendedLink) fetch(packet *RxPacket) []byte {
	if l.memory == nil {
		return nil
	}
	var to []byte
	if m, offset, ok := l.conn.PayloadTarget(packet.Bytes, packet.RemoteBytes); ok {
		if in, end := l.inbox.find(m), offset+int64(packet.RemoteBytes); in != nil && end <= int64(len(in.buf)) {
			to = in.buf[offset:end]
		}
	}
	if to == nil {
		to = l.p.e.connActions.discard.grow(packet.RemoteBytes)
	}
	if !l.memory.Fetch(packet, to) {
		return nil
	}
	return to
}

// getAdvertised copies a message that its sender advertises directly to the buffer of the matching receive, which saves
// a round trip. It reports false if it could not copy all bytes that fit; the caller must then request them. The caller
// holds the lock, as for fetch.
func (l *extendedLink) getAdvertised(in *inbound) bool {
	if l.memory == nil || in.advertised == 0 || in.clearedBytes == 0 || in.recv == nil {
		return false
	}
	if !l.memory.Get(l.p.rank, in.advertised, in.buf[:in.clearedBytes]) {
		return false
	}
	in.highWater, in.storedBytes = in.clearedBytes, in.clearedBytes
	return true
}

// invalidate ends the peer's access to a message's payload.
func (l *extendedLink) invalidate(id extended.ID) {
	if o := l.outbox.find(id); o.advertised {
		o.advertised = false
		l.memory.Invalidate(l.p.rank, uint64(id))
	}
}
