//go:build !linux

package attach

import (
	"net"
	"time"
)

// link is a program's connection. Its Read waits.
type link struct {
	net.Conn
	try func(b []byte) int
}

func newLink(conn *net.UnixConn) (*link, error) { return &link{conn, trier(conn)}, nil }

func (l *link) hangUp() { l.Conn.Close() }
func (l *link) close()  { l.Conn.Close() }

func (l *link) stopReading() { _ = l.SetReadDeadline(time.Now()) }

// input is a link whose reads wait anyway.
type input struct{ *link }

func newInput(l *link, _ bool) (*input, error) { return &input{l}, nil }

func (*input) close() {}

// descriptor is none: nothing is watched on this system.
func (*link) descriptor() int { return -1 }
