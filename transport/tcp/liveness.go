package tcp

import (
	"net"
	"time"
)

const (
	// answerTime is the time that the peer's host has to answer a probe of the existing connection when another
	// one arrives (C2).
	answerTime = time.Second
	// maxCandidates limits the connections of one peer that wait for the liveness check of the existing one;
	// more are closed.
	maxCandidates = 4
)

// admit reports whether a connection of p may become its link. If so, it returns with p.admission held, which
// the caller releases once the link is in place. A peer is identified by its IP address alone: a plain
// connection therefore does not replace one that is alive.
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

// refuse closes a connection, and reports it as mpe.RxBroken.
func (c *Conn) refuse(p *peer, conn *net.TCPConn) {
	c.queue.pushBroken(p, remoteAddr(conn))
	if c.inbox != nil {
		c.inbox.notifyPoll()
	}
	conn.Close()
}
