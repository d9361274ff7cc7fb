package core

import "github.com/zrlmpi/zrlmpid/extended"

// discardBuffer is memory for payload that is fetched only to be discarded. It belongs to packets that the state
// machine is going to drop, which are mostly duplicates.
type discardBuffer struct{ buf []byte }

func (s *discardBuffer) room(n int) []byte {
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
func (l *extendedLink) fetch(a *RxPacket) []byte {
	if l.memory == nil {
		return nil
	}
	var to []byte
	if m, offset, ok := l.conn.Expects(a.Bytes, a.Away); ok {
		if in, end := l.ins.at(m), offset+int64(a.Away); in != nil && end <= int64(len(in.buf)) {
			to = in.buf[offset:end]
		}
	}
	if to == nil {
		to = l.p.e.conns.discard.room(a.Away)
	}
	if !l.memory.Fetch(a, to) {
		return nil
	}
	return to
}

// get copies a message that its sender advertises directly to the matching receive, which saves a round trip.
// It reports false if it did not get all bytes that fit; then they must be requested. Like fetch, it is
// called with the lock held.
func (l *extendedLink) get(in *inbound) bool {
	if l.memory == nil || in.advertised == 0 || in.room == 0 || in.req == nil {
		return false
	}
	if !l.memory.Get(l.p.rank, in.advertised, in.buf[:in.room]) {
		return false
	}
	in.got, in.stored = in.room, in.room
	return true
}

// invalidate ends the peer's access to a message's payload.
func (l *extendedLink) invalidate(id extended.ID) {
	if o := l.outs.at(id); o.advertised {
		o.advertised = false
		l.memory.Invalidate(l.p.rank, uint64(id))
	}
}
