package tcp

import (
	"net"
	"time"
)

const (
	// answerTime is how long the peer's host has to answer a probe of the connection
	// that there is, when another one comes (C2).
	answerTime = time.Second
	// maxCandidates is how many connections of one peer may wait until it is known
	// whether the existing one is still alive; more are closed.
	maxCandidates = 4
)

// admit reports whether a connection of p may become its link, and if so holds
// p.admission, which the caller releases when it has. An IP address is all that identifies
// a peer: so a plain connection does not replace one that is alive.
func (c *Conn) admit(p *peer, conn *net.TCPConn, stream net.Conn) bool {
	if p.candidates.Add(1) > maxCandidates {
		p.candidates.Add(-1)
		c.refuse(p, conn)
		return false
	}
	defer p.candidates.Add(-1)
	p.admission.Lock()
	old, _ := p.current()
	if plain := stream == net.Conn(conn); old == nil || !plain || !c.cfg.answers(c, old) {
		return true
	}
	p.admission.Unlock()
	c.refuse(p, conn)
	return false
}

// refuse closes a connection, and says so.
func (c *Conn) refuse(p *peer, conn *net.TCPConn) {
	c.queue.pushBroken(p, remoteAddr(conn))
	if c.inbox != nil {
		c.inbox.notifyPoll()
	}
	conn.Close()
}
