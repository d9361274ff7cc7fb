package tcp

// Connection reports whether there is a connection to the peer, and if not, what
// became of the last one or of the last attempt to make one: nil if there was none
// yet, and ErrNoPeer, in a *SendError, for a rank that is not spoken to.
func (c *Conn) Connection(peer int) (connected bool, last error) {
	p, err := c.peer(peer)
	if err != nil {
		return false, err
	}
	l, last := p.current()
	if l != nil {
		return true, nil
	}
	return false, last
}
