package tcp

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/rlimit"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/bindfault"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
)

// Conn holds all TCP connections of one rank. It implements mpe.PollTransport.
type Conn struct {
	cfg       Config
	localAddr netip.AddrPort
	ln        *net.TCPListener
	// reserve is a spare file descriptor for the case that the process has run out of descriptors.
	reserve rlimit.Reserve
	// peers is indexed by rank. The entry of a rank that is not a peer is nil.
	peers []*peer

	// unknownPeer takes the place of the peer for connections from unknown addresses.
	unknownPeer peer

	queue queue
	// returnedEvents holds the events that the last call of Recv returned.
	returnedEvents [recvBatch]event

	// inbox reads packets when a waiting goroutine polls it. It is nil if the Conn cannot be polled. With an inbox, the
	// queue carries only events that do not arrive on a connection.
	inbox *inbox

	// ctx is canceled when the Conn is closed, and dialCtx is canceled when closing begins. tasks tracks the goroutines
	// of the Conn.
	ctx, dialCtx        context.Context
	cancel, stopDialing context.CancelFunc
	tasks               sync.WaitGroup
}

var (
	_ mpe.HandshakeTransport = (*Conn)(nil)
	_ mpe.PollTransport      = (*Conn)(nil)
)

// Listen binds the rank to its IP and port from the rank map, and starts to dial the higher software ranks. It
// returns a *ListenError if it cannot bind the address, a *SharedIPError if two software ranks share an IP, and
// a *CredentialError if the peers would reject the rank's certificate.
func Listen(cfg Config) (*Conn, error) { return listen(cfg, true) }

// listen implements Listen. The Conn can be polled if poll is set and canUseInbox returns true.
func listen(cfg Config, poll bool) (*Conn, error) {
	if cfg.Map == nil || !cfg.Map.Has(cfg.Rank) {
		return nil, fmt.Errorf("tcp: rank %d is not in the rank map", cfg.Rank)
	}
	if err := checkUniqueIPs(cfg.Map); err != nil {
		return nil, err
	}
	addr := cfg.Map.Addr(cfg.Rank)
	if cfg.TLS != nil {
		if err := cfg.TLS.Check(addr.Addr()); err != nil {
			return nil, fmt.Errorf("tcp: rank %d: %w", cfg.Rank, err)
		}
	}
	ln, err := (&net.ListenConfig{KeepAliveConfig: keepAlive()}).Listen(context.Background(), network(addr),
		addr.String())
	if err != nil {
		return nil, bindfault.New("tcp", cfg.Rank, cfg.Map, err)
	}
	conn := newConn(cfg, ln.(*net.TCPListener))
	if poll && conn.canUseInbox() {
		if conn.inbox, err = newInbox(conn); err != nil {
			ln.Close()
			return nil, fmt.Errorf("tcp: setting up rank %d at %v: %w", cfg.Rank, addr, err)
		}
	}
	conn.reserve.Open()
	conn.tasks.Go(conn.acceptAll)
	for rank, p := range conn.peers {
		if p != nil && rank > cfg.Rank {
			conn.tasks.Go(func() { conn.keepDialing(p) })
		}
	}
	return conn, nil
}

// newConn returns a Conn with defaults applied, which has no goroutines and no connections yet.
func newConn(cfg Config, ln *net.TCPListener) *Conn {
	if cfg.Profile == nil {
		cfg.Profile = func(int) protocol.Profile { return protocol.CloudFPGA }
	}
	cfg.MaxWords = cmp.Or(cfg.MaxWords, ^uint32(0))
	cfg.WriteTimeout = cmp.Or(max(cfg.WriteTimeout, 0), DefaultWriteTimeout)
	cfg.SendQueue = cmp.Or(max(cfg.SendQueue, 0), DefaultSendQueue)
	cfg.HandshakeTimeout = cmp.Or(max(cfg.HandshakeTimeout, 0), DefaultHandshakeTimeout)
	if cfg.Backoff == nil {
		cfg.Backoff = DefaultBackoff
	}
	if cfg.isAlive == nil {
		cfg.isAlive = (*Conn).answers
	}
	conn := &Conn{cfg: cfg, localAddr: cfg.Map.Addr(cfg.Rank), ln: ln,
		peers: make([]*peer, cfg.Map.Size()), unknownPeer: peer{rank: mpe.UnknownPeer},
		queue: queue{ready: make(chan struct{}, 1)}}
	conn.ctx, conn.cancel = context.WithCancel(context.Background())
	conn.dialCtx, conn.stopDialing = context.WithCancel(conn.ctx)
	for rank := range conn.peers {
		if rank != cfg.Rank && cfg.Map.Kind(rank) == rankmap.Software {
			p := &peer{rank: rank, addr: cfg.Map.Addr(rank), profile: cfg.Profile(rank),
				freeChunks: make(chan *chunk, maxChunks), addrChanged: make(chan struct{}, 1)}
			if cfg.TLS != nil {
				p.tls = cfg.TLS.peerConfig(p.addr.Addr())
			}
			conn.peers[rank] = p
		}
	}
	return conn
}

// canUseInbox reports whether all peers exchange packets of the extended profile over plain TCP. With another
// profile, a write may block; with TLS, the TLS library reads from the connection itself.
func (c *Conn) canUseInbox() bool {
	peers := 0
	for _, p := range c.peers {
		if p == nil {
			continue
		}
		if p.profile != protocol.Extended || p.tls != nil {
			return false
		}
		peers++
	}
	return hasPoll && peers > 0
}

func network(addr netip.AddrPort) string {
	if addr.Addr().Is4() {
		return "tcp4"
	}
	return "tcp6"
}

func keepAlive() net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: keepAliveIdle, Interval: keepAliveInterval, Count: keepAliveCount}
}

// LocalAddr returns the address to which the rank is bound.
func (c *Conn) LocalAddr() netip.AddrPort { return c.localAddr }

// Reliable returns true: no data is lost as long as its connection exists.
func (c *Conn) Reliable() bool { return true }

// Close closes the listener and all connections, and returns when all goroutines of the Conn have exited. A pending
// Recv returns mpe.ErrTransportClosed. Close waits up to half a second for the peers to read pending data and to close
// the connections.
func (c *Conn) Close() error {
	c.stopDialing()
	c.ln.Close() // its only error: already closed
	if c.inbox != nil {
		c.inbox.close()
	} else {
		c.drain()
	}
	c.cancel()
	c.tasks.Wait()
	c.reserve.Close()
	return nil
}

// drain waits until all outboxes are written. They contain CLOSE packets, and acknowledgements that the peers need for
// a clean shutdown.
func (c *Conn) drain() {
	var links []*link
	for _, p := range c.peers {
		if p == nil {
			continue
		}
		if l, _ := p.currentLink(); l != nil && l.out != nil {
			l.out.finish()
			links = append(links, l)
		}
	}
	deadline := time.After(drainTime)
	for _, l := range links {
		select {
		case <-l.done:
		case <-deadline:
			return
		}
	}
}
