//go:build !linux

package attach

import (
	"net"
	"time"
)

// link is a connection whose Read waits. There is no program behind it: on this system
// none may attach.
type link struct {
	goroutines
	net.Conn
}

func newLink(conn *net.UnixConn) (*link, error) { return &link{Conn: conn}, nil }

func (l *link) HangUp() { l.Conn.Close() }
func (l *link) Close()  { l.Conn.Close() }

func (l *link) StopReading() { _ = l.SetReadDeadline(time.Now()) }

// TryWrite writes nothing: callers that wait do.
func (*link) TryWrite([]byte) int { return 0 }

// descriptor is none: nothing is watched on this system.
func (*link) descriptor() int { return noDescriptor }

// Sleep returns true.
func (*link) Sleep() bool { return true }
