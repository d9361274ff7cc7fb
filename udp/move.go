package udp

import (
	"fmt"
	"net/netip"

	"github.com/zrlmpi/zrlmpid/transport/rankmap"
)

// Prepare makes out how to reach the peers where m has them, and returns what has
// packets go there, and come from there and from nowhere else. The error says why that
// cannot be; then nothing is different. m has the same ranks as Config.Map, and this
// one where it was.
func (c *Conn) Prepare(m *rankmap.Map) (move func(), err error) {
	if m.Size() != c.cfg.Map.Size() || m.Addr(c.cfg.Rank) != c.local {
		return nil, fmt.Errorf("udp: rank %d at %v: a socket stays where it is, in a cluster of %d ranks",
			c.cfg.Rank, c.local, c.cfg.Map.Size())
	}
	resolved, err := c.sock.resolve(addresses(m))
	if err != nil {
		return nil, fmt.Errorf("udp: rank %d cannot have its peers at other addresses: %w", c.cfg.Rank, err)
	}
	return func() {
		c.sending.Lock()
		defer c.sending.Unlock()
		resolved()
		c.where.Store(m)
	}, nil
}

// addresses returns where the ranks are, in rank order.
func addresses(m *rankmap.Map) []netip.AddrPort {
	all := make([]netip.AddrPort, m.Size())
	for rank := range all {
		all[rank] = m.Addr(rank)
	}
	return all
}
