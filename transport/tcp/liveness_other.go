//go:build !linux

package tcp

import (
	"net"
	"time"
)

// answers has the system probe a connection when nothing has come for a second, and end
// it if there is no answer for another. It reports whether it lasts.
func (c *Conn) answers(l *link) bool {
	// It fails if the connection has ended.
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
