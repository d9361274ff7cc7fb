package mpe

// strays is memory for payload that is fetched and belongs nowhere: of packets that
// the state machine is going to drop, mostly because they have arrived before.
type strays struct{ buf []byte }

func (s *strays) room(n int) []byte {
	if len(s.buf) < n {
		s.buf = make([]byte, n)
	}
	return s.buf[:n]
}

// fetch gets the payload of a packet that is still with its sender, straight to where
// it belongs. It returns nil if the packet is lost.
//
// It is called with the lock held, so that the buffer cannot be taken away meanwhile;
// and only what is missing is written to, as the sender's memory holds something else
// once a packet has been acknowledged. The transport waits for nothing meanwhile.
func (e *Engine) fetch(p *peer, a *RxPacket) []byte {
	if p.lending == nil {
		return nil
	}
	var to []byte
	if m, offset, ok := p.conn.Expects(a.Bytes, a.Away); ok {
		if in, end := p.ins.at(m), offset+int64(a.Away); in != nil && end <= int64(len(in.buf)) {
			to = in.buf[offset:end]
		}
	}
	if to == nil {
		to = e.strays.room(a.Away)
	}
	if !p.lending.Fetch(a, to) {
		return nil
	}
	return to
}

// take gets a message that its sender offers, straight to the receive that it was
// matched with, which spares the two of them a conversation. It reports false if it has
// not got all that there is room for: then that is to be asked for. Like fetch, it is
// called with the lock held.
func (e *Engine) take(p *peer, in *inbound) bool {
	if p.lending == nil || in.offer == 0 || in.room == 0 || in.req == nil {
		return false
	}
	if !p.lending.Take(p.rank, in.offer, in.buf[:in.room]) {
		return false
	}
	in.got, in.stored = in.room, in.room
	return true
}
