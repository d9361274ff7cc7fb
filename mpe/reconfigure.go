package mpe

// Reconfigure takes what may change while messages are exchanged, of a peer for each
// rank as New takes them: the address, which is for people, and what Reconfigure of
// packages handshake and extended takes. Messages that are under way end by the rules
// that they began with. There are as many peers as in New.
func (e *Engine) Reconfigure(peers []Peer) {
	e.lock()
	defer e.unlock()
	if e.state == closed {
		return
	}
	for rank, p := range e.peers {
		if p == nil {
			continue
		}
		next := &peers[rank]
		p.cfg.Address = next.Address
		p.reconfigure(next)
	}
	e.flush()
}
