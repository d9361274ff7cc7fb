package tcp

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/netip"

	"github.com/zrlmpi/zrlmpid/transport/rankmap"
)

// Prepare makes out how to reach the peers where m has them, with credentials that
// were read anew, and returns what has connections be made so. Those to peers that have
// moved are closed, and others go on as they are. The error says why it cannot be: a
// *SharedIPError, a *CredentialError, or that more is different than may be; then
// nothing has happened. m has the same ranks as Config.Map, and this one where it was;
// there are credentials if Config had some.
func (c *Conn) Prepare(m *rankmap.Map, credentials *TLS) (move func(), err error) {
	if m.Size() != c.cfg.Map.Size() || m.Addr(c.cfg.Rank) != c.local || (credentials == nil) != (c.cfg.TLS == nil) {
		return nil, fmt.Errorf("tcp: rank %d at %v: a listener stays where it is, in a cluster of %d ranks, with TLS or without",
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

// at returns where the peer is, and what connections with it are secured with, or nil.
func (p *peer) at() (netip.AddrPort, *tls.Config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.addr, p.tls
}

// dialFrom returns where the peer is. When it moves, cancel is called, unless the peer
// was dialed anew since.
func (p *peer) dialFrom(cancel context.CancelFunc) netip.AddrPort {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopDial = cancel
	return p.addr
}

// move notes where the peer is, and what to secure connections with. If that is
// elsewhere, it is dialed there at once; its link is returned, if it has one.
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
	// Shaking hands with TLS may take its time.
	for _, conn := range p.shaking {
		conn.Close()
	}
	return p.link
}

// closeIfMoved closes a link that has become the peer's, if the peer is no longer at
// the other end of it. One that dials us does so from any port.
func (c *Conn) closeIfMoved(l *link) {
	addr, _ := l.peer.at()
	if !sameIP(addr.Addr(), l.from.Addr()) || l.peer.rank > c.cfg.Rank && addr.Port() != l.from.Port() {
		l.close(errMoved)
	}
}
