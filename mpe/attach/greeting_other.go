//go:build !linux

package attach

import "net"

// greeting is a connection to a daemon, which has no memory to share.
type greeting struct{ *net.UnixConn }

func newGreeting(conn *net.UnixConn) *greeting { return &greeting{conn} }

func (g *greeting) stream(_, _ uint64) (polled, error) { return newLink(g.UnixConn) }
