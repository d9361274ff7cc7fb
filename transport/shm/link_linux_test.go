package shm

// Link reports whether there is a link to the peer. If not, last is the error that ended the last link or attempt, or
// nil before the first attempt. For a rank that is not a peer, last is a *SendError with ErrNoPeer.
func (c *Conn) Link(peer int) (linked bool, last error) {
	p, err := c.peer(peer)
	if err != nil {
		return false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.link != nil, p.lastError
}

// SingleCopy reports whether the peer fetches long payload directly from our memory, and whether we fetch it
// from the peer's. Both are false without a link.
func (c *Conn) SingleCopy(peer int) (exposes, fetches bool) {
	p, err := c.peer(peer)
	if err != nil {
		return false, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.link; l != nil {
		return l.canExpose, l.canFetch
	}
	return false, false
}
