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
		p := c.peerAtIP(remoteAddr(conn).Addr())
		if p == nil {
			c.rejectConn(&c.unknownPeer, conn, "")
			continue
		}
		if _, secured := p.addrAndTLS(); secured != nil {
			p.addHandshake(conn)
		}
		c.tasks.Go(func() {
			c.serve(p, conn)
			c.afterConnection(p)
		})
	}
}

// peerAtIP returns the lower-ranked peer with the given IP, or nil. Higher ranks never dial us.
func (c *Conn) peerAtIP(ip netip.Addr) *peer {
	for _, p := range c.peers[:c.cfg.Rank] {
		if p == nil {
			continue
		}
		if addr, _ := p.addrAndTLS(); sameIP(addr.Addr(), ip) {
			return p
		}
	}
	return nil
}

// sameIP reports whether two addresses are equal apart from their zones, whose names differ from machine to
// machine.
func sameIP(a, b netip.Addr) bool { return a.WithZone("") == b.WithZone("") }
