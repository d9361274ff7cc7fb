//go:build !linux

package attach

import (
	"errors"
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

// newInput returns a link whose reads wait anyway.
func newInput(l *link, _ bool) (*link, error) { return l, nil }

// Sleep returns true.
func (*link) Sleep() bool { return true }

// greeting is a connection to a daemon, which has no memory to share.
type greeting struct{ *net.UnixConn }

func newGreeting(conn *net.UnixConn) *greeting { return &greeting{conn} }

func (g *greeting) stream(_, _ uint64) (polled, error) { return newLink(g.UnixConn) }

// offer is none: programs do not share memory on this system.
type offer struct{}

var errNoRings = errors.New("this system has no memory to be handed over")

func newOffer(int) (*offer, error) { return nil, errNoRings }

func (*offer) write(*net.UnixConn, []byte) error { return errNoRings }

func (*offer) stream(*net.UnixConn) (rings, error) { return nil, errNoRings }

func (*offer) release() {}
