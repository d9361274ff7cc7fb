package tcp

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/netip"

	"github.com/zrlmpi/zrlmpid/transport/rankmap"
)

// Prepare validates new peer addresses and credentials, and returns a function that applies them. move closes
// the connections to peers that have moved, and keeps all others. The error is a *SharedIPError, a
// *CredentialError, or reports a difference that is not allowed; nothing has changed then. m must have the same
// ranks as Config.Map, and this rank at the same address; credentials must be non-nil if and only if Config.TLS
// was.
func (c *Conn) Prepare(m *rankmap.Map, credentials *TLS) (move func(), err error) {
	if m.Size() != c.cfg.Map.Size() || m.Addr(c.cfg.Rank) != c.local || (credentials == nil) != (c.cfg.TLS == nil) {
		return nil, fmt.Errorf("tcp: rank %d at %v: the address, the number of ranks (%d) and TLS cannot change",
			c.cfg.Rank, c.local, c.cfg.Map.Size())
	}
	if err := checkIPs(m); err != nil {
		return nil, err
	}
	if credentials != nil {
		if err := credentials.Check(c.local.Addr()); err != nil {
			return nil, fmt.Errorf("tcp: rank %d: %w", c.cfg.Rank, err)
		}
	}
	return func() {
		for rank, p := range c.peers {
			if p == nil {
				continue
			}
			addr := m.Addr(rank)
			var config *tls.Config
			if credentials != nil {
				config = credentials.config(addr.Addr())
			}
			if l := p.move(addr, config); l != nil {
				c.closeIfMoved(l)
			}
		}
	}, nil
}

// at returns the peer's address, and the TLS configuration of its connections or nil.
func (p *peer) at() (netip.AddrPort, *tls.Config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.addr, p.tls
}

// dialFrom returns the peer's address. cancel is called if the peer moves before the next dial.
func (p *peer) dialFrom(cancel context.CancelFunc) netip.AddrPort {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopDial = cancel
	return p.addr
}

// move sets the peer's address and TLS configuration. If the address is new, the peer is dialed there at once,
// and its link, if any, is returned to be closed.
func (p *peer) move(addr netip.AddrPort, config *tls.Config) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tls = config
	if p.addr == addr {
		return nil
	}
	p.addr = addr
	if p.stopDial != nil {
		p.stopDial()
	}
	select {
	case p.moved <- struct{}{}:
	default:
	}
	// A TLS handshake with the old address may take long.
	for _, conn := range p.shaking {
		conn.Close()
	}
	return p.link
}

// closeIfMoved closes a link of a peer that is no longer at its remote address. A peer that dials us may use
// any port.
func (c *Conn) closeIfMoved(l *link) {
	addr, _ := l.peer.at()
	if !sameIP(addr.Addr(), l.from.Addr()) || l.peer.rank > c.cfg.Rank && addr.Port() != l.from.Port() {
		l.close(errMoved)
	}
}
