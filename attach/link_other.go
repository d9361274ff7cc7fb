//go:build !linux

package attach

import (
	"net"
	"time"
)

// link is a connection whose Read waits. There is no program behind it: on this system
// none may attach.
type link struct{ net.Conn }

func newLink(conn *net.UnixConn) (*link, error) { return &link{conn}, nil }

func (l *link) hangUp() { l.Conn.Close() }
func (l *link) close()  { l.Conn.Close() }

func (l *link) stopReading() { _ = l.SetReadDeadline(time.Now()) }

// try writes nothing: callers that wait do.
func (*link) try([]byte) int { return 0 }

// descriptor is none: nothing is watched on this system.
func (*link) descriptor() int { return -1 }

// input is a link whose reads wait anyway.
type input struct{ *link }

func newInput(l *link, _ bool) (*input, error) { return &input{l}, nil }

func (*input) close() {}
