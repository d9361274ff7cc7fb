package tcp

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/netip"

	"github.com/zrlmpi/zrlmpid/transport/rankmap"
)

// Prepare validates new peer addresses and credentials, and returns a function that applies them. move closes the
// connections to peers with a new address, and keeps all other connections. m must have the same ranks as Config.Map,
// with this rank at the same address; credentials must be nil if and only if Config.TLS was nil. The error is a
// *SharedIPError, a *CredentialError, or an error that describes a change that is not allowed. On error, nothing
// changes.
func (c *Conn) Prepare(m *rankmap.Map, credentials *TLS) (move func(), err error) {
	if m.Size() != c.cfg.Map.Size() || m.Addr(c.cfg.Rank) != c.localAddr || (credentials == nil) != (c.cfg.TLS == nil) {
		return nil, fmt.Errorf("tcp: rank %d at %v: the address, the number of ranks (%d) and TLS cannot change",
			c.cfg.Rank, c.localAddr, c.cfg.Map.Size())
	}
	if err := checkUniqueIPs(m); err != nil {
		return nil, err
	}
	if credentials != nil {
		if err := credentials.Check(c.localAddr.Addr()); err != nil {
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
				config = credentials.peerConfig(addr.Addr())
			}
			if l := p.setAddr(addr, config); l != nil {
				c.closeIfMoved(l)
			}
		}
	}, nil
}

// addrAndTLS returns the peer's address, and the TLS configuration for connections to it, or nil without
// TLS.
func (p *peer) addrAndTLS() (netip.AddrPort, *tls.Config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.addr, p.tls
}

// addrForDial returns the peer's address. cancel is called if the peer moves before the next dial.
func (p *peer) addrForDial(cancel context.CancelFunc) netip.AddrPort {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopDial = cancel
	return p.addr
}

// setAddr sets the peer's address and TLS configuration. If the address is new, the peer is dialed there at
// once; setAddr returns the link to the old address, if any, which the caller must close.
func (p *peer) setAddr(addr netip.AddrPort, config *tls.Config) *link {
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
	case p.addrChanged <- struct{}{}:
	default:
	}
	// A TLS handshake with the old address may take a long time.
	for _, conn := range p.handshaking {
		conn.Close()
	}
	return p.link
}

// closeIfMoved closes a link if its remote address is no longer the address of the peer. A peer that dials us
// may use any port.
func (c *Conn) closeIfMoved(l *link) {
	addr, _ := l.peer.addrAndTLS()
	if !sameIP(addr.Addr(), l.from.Addr()) || l.peer.rank > c.cfg.Rank && addr.Port() != l.from.Port() {
		l.close(errMoved)
	}
}
