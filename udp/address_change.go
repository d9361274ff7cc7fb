package udp

import (
	"fmt"
	"net/netip"

	"github.com/zrlmpi/zrlmpid/transport/rankmap"
)

// Prepare resolves the addresses of the peers in m. It returns a function that makes the Conn send to these addresses,
// and accept packets only from them. m must have as many ranks as Config.Map, and the same address for this rank. On
// error, nothing changes.
func (c *Conn) Prepare(m *rankmap.Map) (move func(), err error) {
	if m.Size() != c.cfg.Map.Size() || m.Addr(c.cfg.Rank) != c.localAddr {
		return nil, fmt.Errorf("udp: rank %d at %v: the address and the number of ranks (%d) cannot change",
			c.cfg.Rank, c.localAddr, c.cfg.Map.Size())
	}
	resolved, err := c.sock.resolve(addresses(m))
	if err != nil {
		return nil, fmt.Errorf("udp: rank %d cannot change the addresses of its peers: %w", c.cfg.Rank, err)
	}
	return func() {
		c.sendMu.Lock()
		defer c.sendMu.Unlock()
		resolved()
		c.peerMap.Store(m)
	}, nil
}

// addresses returns the addresses of all ranks, in rank order.
func addresses(m *rankmap.Map) []netip.AddrPort {
	all := make([]netip.AddrPort, m.Size())
	for rank := range all {
		all[rank] = m.Addr(rank)
	}
	return all
}
