package core

import "github.com/zrlmpi/zrlmpid/extended"

// discardBuffer is memory for payload that is fetched only to be discarded. It belongs to packets that the state
// machine is going to drop, which are mostly duplicates.
type discardBuffer struct{ buf []byte }

func (s *discardBuffer) grow(n int) []byte {
	if len(s.buf) < n {
		s.buf = make([]byte, n)
	}
	return s.buf[:n]
}

// fetch copies the payload of a packet from its sender's memory directly to its destination. It returns nil
// if the packet is lost.
//
// It is called with the lock held, so that the buffer cannot be reused during the copy, and the transport does not
// block. Only missing bytes are written, because the sender's memory changes after a packet is acknowledged.
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

// getAdvertised copies a message that its sender advertises directly to the matching receive, which saves a round trip.
// It reports false if it did not get all bytes that fit; then they must be requested. Like fetch, it is
// called with the lock held.
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
