//go:build !linux

package tcp

import (
	"net"
	"time"
)

// answers makes the system probe a connection after a second of silence, and end it if no answer arrives within
// another second. It reports whether the connection survives.
func (c *Conn) answers(l *link) bool {
	// This can fail only because the connection is closed.
	_ = l.conn.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: answerTime, Interval: answerTime, Count: 1})
	defer func() { _ = l.conn.SetKeepAliveConfig(keepAlive()) }()
	select {
	case <-l.closing:
		return false
	case <-time.After(3 * answerTime):
	case <-c.ctx.Done():
	}
	return true
}
