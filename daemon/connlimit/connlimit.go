// Package connlimit limits the number of open connections of an http.Server without delaying new ones: once the
// limit is reached, each new connection closes an older one. Clients that hold connections open, send headers
// slowly or send nothing therefore cannot lock out other clients.
package connlimit

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// Limit limits the number of open connections. Its ConnState method is the ConnState hook of a single http.Server. A
// Limit is safe for concurrent use.
//
// Once the limit is reached, each new connection closes the one that has been without a request longest: idle, in its
// TLS handshake, or with incomplete headers. If every other connection has a request, the connection with the oldest
// request is closed. A server that limits concurrent requests to less than this limit therefore never loses a
// connection with a request.
type Limit struct {
	max int

	mu         sync.Mutex
	conns      map[net.Conn]connPhase
	phaseCount uint64
}

// connPhase describes the current phase of a connection, which is active or idle.
type connPhase struct {
	// active is set while the server answers a request whose headers are complete.
	active bool
	// sequence is the position of this phase in the order in which all phases started.
	sequence uint64
}

// New returns a Limit of max(1, connections) connections.
func New(connections int) *Limit {
	return &Limit{max: max(1, connections), conns: make(map[net.Conn]connPhase)}
}

// ConnState is the server's ConnState hook.
func (l *Limit) ConnState(c net.Conn, state http.ConnState) {
	if excess := l.update(c, state); excess != nil {
		closeNow(excess)
	}
}

// update records the new state of a connection. It returns the connection to close, or nil if the limit is not
// exceeded.
func (l *Limit) update(c net.Conn, state http.ConnState) (excess net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch _, open := l.conns[c]; {
	case state == http.StateClosed || state == http.StateHijacked:
		delete(l.conns, c)
		return nil
	case state != http.StateNew && !open:
		return nil // the limit has already closed it
	}
	if state == http.StateNew && len(l.conns) >= l.max {
		excess = l.oldest()
		delete(l.conns, excess)
	}
	l.phaseCount++
	l.conns[c] = connPhase{state == http.StateActive, l.phaseCount}
	return excess
}

// oldest returns the connection to close first.
func (l *Limit) oldest() (oldest net.Conn) {
	var first connPhase
	for c, p := range l.conns {
		if oldest == nil || (p.active == first.active && p.sequence < first.sequence) || (!p.active && first.active) {
			oldest, first = c, p
		}
	}
	return oldest
}

// closeNow closes a connection without sending a TLS close_notify alert, which might block.
func closeNow(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	_ = c.Close() // ignore the error: the server also closes it
}
