package tcp

// Connection reports whether there is a connection to the peer. If not, last is the error that ended the last
// connection or attempt, or nil before the first attempt. For a rank that is not a peer, last is a *SendError with
// ErrNoPeer.
func (c *Conn) Connection(peer int) (connected bool, last error) {
	p, err := c.peer(peer)
	if err != nil {
		return false, err
	}
	l, last := p.currentLink()
	if l != nil {
		return true, nil
	}
	return false, last
}
