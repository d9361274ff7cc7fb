// Package connlimit limits the open connections of an http.Server without delaying new ones: at the limit, an
// older connection is closed for each new one. So clients that hold connections open, send their headers slowly
// or send nothing cannot keep others from being served.
package connlimit

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// Limit limits connections. Its method ConnState is the hook of one http.Server. A Limit is safe for concurrent
// use.
//
// At the limit, it closes the connection that has been without a request for longest: idle, in its TLS
// handshake, or with incomplete headers. If all others have a request, it closes the one whose request began
// first. If the server itself limits its requests to fewer than the limit, none with a request is ever closed.
type Limit struct {
	max int

	mu    sync.Mutex
	conns map[net.Conn]phase
	steps uint64
}

// phase is the phase of a connection.
type phase struct {
	// active is set while a request with complete headers is being answered.
	active bool
	// since orders phases by their start.
	since uint64
}

// New returns a limit of the given number of connections, at least one.
func New(connections int) *Limit {
	return &Limit{max: max(1, connections), conns: make(map[net.Conn]phase)}
}

// ConnState is the server's ConnState hook.
func (l *Limit) ConnState(c net.Conn, state http.ConnState) {
	if excess := l.note(c, state); excess != nil {
		closeNow(excess)
	}
}

// note records the state of a connection. It returns a connection to be closed, or nil.
func (l *Limit) note(c net.Conn, state http.ConnState) (excess net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch _, open := l.conns[c]; {
	case state == http.StateClosed || state == http.StateHijacked:
		delete(l.conns, c)
		return nil
	case state != http.StateNew && !open:
		return nil // closed at the limit
	}
	if state == http.StateNew && len(l.conns) >= l.max {
		excess = l.oldest()
		delete(l.conns, excess)
	}
	l.steps++
	l.conns[c] = phase{state == http.StateActive, l.steps}
	return excess
}

// oldest returns the connection to be closed first.
func (l *Limit) oldest() (oldest net.Conn) {
	var first phase
	for c, p := range l.conns {
		if oldest == nil || (p.active == first.active && p.since < first.since) || (!p.active && first.active) {
			oldest, first = c, p
		}
	}
	return oldest
}

// closeNow closes a connection without a TLS close_notify alert, whose write might block.
func closeNow(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	_ = c.Close() // the server closes it again
}
