package tcp

import (
	"net/netip"
)

// acceptAll accepts connections until the Conn is closed.
func (c *Conn) acceptAll() {
	for {
		conn, err := c.ln.AcceptTCP()
		if err != nil {
			if !sleep(c.ctx, acceptPause) {
				return
			}
			continue
		}
		from := remoteAddr(conn)
		p := c.dialerAt(from.Addr())
		if p == nil {
			conn.Close()
			c.queue.pushBroken(&c.stranger, from)
			continue
		}
		c.tasks.Go(func() { c.run(p, conn) })
	}
}

// dialerAt returns the peer at an IP, if it is one of those that dial us.
func (c *Conn) dialerAt(ip netip.Addr) *peer {
	for rank, p := range c.peers[:c.cfg.Rank] {
		if p != nil && sameIP(c.cfg.Map.Addr(rank).Addr(), ip) {
			return p
		}
	}
	return nil
}

// sameIP compares without the zone, whose name differs from machine to machine.
func sameIP(a, b netip.Addr) bool { return a.WithZone("") == b.WithZone("") }
