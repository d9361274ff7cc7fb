package tcp

import (
	"net/netip"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/rlimit"
)

// acceptAll accepts connections until the Conn is closed.
func (c *Conn) acceptAll() {
	for {
		conn, err := c.ln.AcceptTCP()
		if err != nil {
			c.refuseCaller(rlimit.Descriptor(err))
			select {
			case <-time.After(acceptPause):
				continue
			case <-c.ctx.Done():
				return
			}
		}
		p := c.dialerAt(remoteAddr(conn).Addr())
		if p == nil {
			c.refuse(&c.unknown, conn)
			continue
		}
		if _, secured := p.at(); secured != nil {
			p.shake(conn)
		}
		c.tasks.Go(func() {
			c.serve(p, conn)
			c.afterConnection(p)
		})
	}
}

// dialerAt returns the lower-ranked peer with the given IP, or nil. Only lower ranks dial us.
func (c *Conn) dialerAt(ip netip.Addr) *peer {
	for _, p := range c.peers[:c.cfg.Rank] {
		if p == nil {
			continue
		}
		if addr, _ := p.at(); sameIP(addr.Addr(), ip) {
			return p
		}
	}
	return nil
}

// sameIP reports whether two addresses are equal apart from their zones, whose names differ from machine to
// machine.
func sameIP(a, b netip.Addr) bool { return a.WithZone("") == b.WithZone("") }
