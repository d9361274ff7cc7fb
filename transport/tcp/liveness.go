package tcp

import (
	"net"
	"time"
)

const (
	// answerTime is the maximum time that the peer's host may take to answer a probe of the existing connection
	// when another one arrives (C2).
	answerTime = time.Second
	// maxCandidates is the maximum number of connections from one peer that wait while the existing one is probed.
	// Further connections are closed.
	maxCandidates = 4
)

// admit reports whether a connection from p may become its link. If so, it returns with p.admissionMu held, which the
// caller releases once the link is in place. A plain connection does not replace one that is alive, because a peer is
// identified only by its IP address.
func (c *Conn) admit(p *peer, conn *net.TCPConn, stream net.Conn) bool {
	if p.candidates.Add(1) > maxCandidates {
		p.candidates.Add(-1)
		c.rejectConn(p, conn, "too many connections from its address are waiting")
		return false
	}
	defer p.candidates.Add(-1)
	p.admissionMu.Lock()
	old, _ := p.currentLink()
	if plain := stream == net.Conn(conn); old == nil || !plain || !c.cfg.isAlive(c, old) {
		return true
	}
	p.admissionMu.Unlock()
	c.rejectConn(p, conn, "another connection from its address is alive")
	return false
}

// rejectConn closes a connection, and reports it as mpe.RxBroken with the given reason, which is empty if the address
// is unknown.
func (c *Conn) rejectConn(p *peer, conn *net.TCPConn, reason string) {
	c.queue.pushBroken(p, remoteAddr(conn), reason)
	if c.inbox != nil {
		c.inbox.notifyPoll()
	}
	conn.Close()
}
