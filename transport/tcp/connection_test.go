package tcp

// Connection reports whether there is a connection to the peer. If not, last is the error that ended the last
// connection or attempt: nil if there was none yet, and ErrNoPeer, in a *SendError, for a rank that is not a
// peer.
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
