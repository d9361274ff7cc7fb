package tcp

import (
	"context"
	"net"
	"time"
)

// keepDialing keeps a connection to p open until the Conn is closed.
func (c *Conn) keepDialing(p *peer) {
	dialer := net.Dialer{
		// The acceptor identifies us by our IP. The system chooses the port.
		LocalAddr:       &net.TCPAddr{IP: c.localAddr.Addr().AsSlice(), Zone: c.localAddr.Addr().Zone()},
		Timeout:         dialTimeout,
		KeepAliveConfig: keepAlive(),
	}
	connected := false
	for n := 1; ; n++ {
		conn, err := c.dial(&dialer, p)
		switch {
		case err == nil:
			connected = true
			if c.serve(p, conn.(*net.TCPConn)) {
				// If the peer closes the connection at once, for example because its rank map does not list us, the
				// back-off keeps growing.
				n = 0
			}
		case connected && isRefused(err):
			connected = false
			c.reportGone(p)
			fallthrough
		default:
			c.recordFailure(p, err)
		}
		select {
		case <-time.After(c.cfg.Backoff(max(n, 1))):
		case <-p.addrChanged:
			n = 0
		case <-c.dialCtx.Done():
			return
		}
	}
}

// dial connects to the current address of p. It aborts when the address of p changes.
func (c *Conn) dial(dialer *net.Dialer, p *peer) (net.Conn, error) {
	ctx, cancel := context.WithCancel(c.dialCtx)
	defer cancel()
	addr := p.addrForDial(cancel)
	return dialer.DialContext(ctx, network(addr), addr.String())
}

// serve runs the connection conn with p, dialed by either side. It reports whether the connection worked.
func (c *Conn) serve(p *peer, conn *net.TCPConn) (worked bool) {
	stream, err := c.secureConn(p, conn)
	return err == nil && c.runLink(p, conn, stream)
}
