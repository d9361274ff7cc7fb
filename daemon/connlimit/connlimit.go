// Package connlimit bounds the open connections of an http.Server without keeping a new
// one waiting: at the limit, an older connection is closed for it. Clients that hold
// connections open, send their headers slowly or send nothing can therefore not keep
// others from being answered.
package connlimit

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// Limit bounds connections. Its method ConnState is the hook of one http.Server. A
// Limit may be used concurrently.
//
// The connection that is closed at the limit is the one that has been without a request
// for longest: idle, in its TLS handshake, or with headers that are not complete. If
// all others have a request, it is the one whose request began first. A server that
// bounds its requests to fewer than the limit never has one closed.
type Limit struct {
	max int

	mu    sync.Mutex
	conns map[net.Conn]phase
	steps uint64
}

// phase is what a connection does.
type phase struct {
	// active: a request with complete headers is being answered.
	active bool
	// since orders phases by when they began.
	since uint64
}

// New returns a limit of so many connections, at least one.
func New(connections int) *Limit {
	return &Limit{max: max(1, connections), conns: make(map[net.Conn]phase)}
}

// ConnState is to be the server's ConnState hook.
func (l *Limit) ConnState(c net.Conn, state http.ConnState) {
	if excess := l.note(c, state); excess != nil {
		closeNow(excess)
	}
}

// note notes the state of a connection. It returns one that is to be closed, or nil.
func (l *Limit) note(c net.Conn, state http.ConnState) (excess net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch _, open := l.conns[c]; {
	case state == http.StateClosed || state == http.StateHijacked:
		delete(l.conns, c)
		return nil
	case state != http.StateNew && !open:
		return nil // it was closed at the limit
	}
	if state == http.StateNew && len(l.conns) >= l.max {
		excess = l.oldest()
		delete(l.conns, excess)
	}
	l.steps++
	l.conns[c] = phase{state == http.StateActive, l.steps}
	return excess
}

// oldest returns the connection that is to be closed first.
func (l *Limit) oldest() (oldest net.Conn) {
	var first phase
	for c, p := range l.conns {
		if oldest == nil || (p.active == first.active && p.since < first.since) || (!p.active && first.active) {
			oldest, first = c, p
		}
	}
	return oldest
}

// closeNow closes a connection without a last TLS record, for which it might wait.
func closeNow(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	_ = c.Close() // the server closes it again
}
