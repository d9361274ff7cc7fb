package udp

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/bindfault"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
)

// Conn is the UDP socket of one rank. It implements mpe.PollTransport.
type Conn struct {
	cfg   Config
	local netip.AddrPort
	sock  socket
	caps  capabilities
	// asked and granted are the requested and the actual size of the receive buffer, in bytes.
	asked, granted int
	dropped        dropSum

	// sending guards out, buckets and sock.send.
	sending sync.Mutex
	out     []outgoing
	buckets []bucket // by peer

	// where has the addresses of the peers. It is Config.Map until they move.
	where atomic.Pointer[rankmap.Map]

	in   []incoming
	head [protocol.ExtHeaderLen]byte // of the datagram that was peeked at
	// lastPeer is the rank to which lastMap resolved lastFrom.
	lastFrom netip.AddrPort
	lastPeer int
	lastMap  *rankmap.Map
}

var (
	_ mpe.PollTransport      = (*Conn)(nil)
	_ mpe.HandshakeTransport = (*Conn)(nil)

	_ mpe.DatagramTransport = (*Conn)(nil)
)

// Listen binds the rank to its own IP and port in the rank map. It returns a *ListenError if the address is not
// available.
func Listen(cfg Config) (*Conn, error) {
	if cfg.Impair != nil {
		return listen(cfg, newImpairedSocket)
	}
	return listen(cfg, newSocket)
}

// opener makes a socket from a net.UDPConn. On success it takes ownership of the connection.
type opener func(conn *net.UDPConn, peers []netip.AddrPort, cfg *Config) (socket, error)

func listen(cfg Config, open opener) (*Conn, error) {
	if cfg.Map == nil || !cfg.Map.Has(cfg.Rank) {
		return nil, fmt.Errorf("udp: rank %d is not in the rank map", cfg.Rank)
	}
	if err := cfg.applyEnv(); err != nil {
		return nil, err
	}
	if cfg.ReceiveBuffer == 0 {
		cfg.ReceiveBuffer = DefaultReceiveBuffer
	}
	if cfg.ReceiveBuffer < 0 || cfg.ReceiveBuffer > maxReceiveBuffer {
		return nil, fmt.Errorf("udp: a receive buffer of %d bytes: must be 1 to %d, or 0 for %d",
			cfg.ReceiveBuffer, maxReceiveBuffer, DefaultReceiveBuffer)
	}
	addr := cfg.Map.Addr(cfg.Rank)
	udpConn := cfg.Socket
	if udpConn == nil {
		network := "udp6"
		if addr.Addr().Is4() {
			network = "udp4"
		}
		packetConn, err := (&net.ListenConfig{}).ListenPacket(context.Background(), network, addr.String())
		if err != nil {
			return nil, bindfault.New("udp", cfg.Rank, cfg.Map, err)
		}
		udpConn = packetConn.(*net.UDPConn)
	}
	c := &Conn{cfg: cfg, local: addr, asked: cfg.ReceiveBuffer, lastPeer: mpe.UnknownPeer}
	c.where.Store(cfg.Map)
	if err := c.setUp(udpConn, open); err != nil {
		if cfg.Socket == nil {
			udpConn.Close()
		}
		return nil, fmt.Errorf("udp: setting up the socket of rank %d at %v: %w", cfg.Rank, addr, err)
	}
	return c, nil
}

// maxReceiveBuffer keeps twice the size, which Linux uses internally, within an int32.
const maxReceiveBuffer = 1 << 29

func (c *Conn) setUp(udpConn *net.UDPConn, open opener) (err error) {
	if c.granted, err = SetReceiveBuffer(udpConn, c.asked); err != nil {
		return fmt.Errorf("asking for a receive buffer of %d bytes: %w", c.asked, err)
	}
	peers := addresses(c.cfg.Map)
	if c.sock, err = open(udpConn, peers, &c.cfg); err != nil {
		return err
	}
	c.caps = c.sock.capabilities()
	c.out = make([]outgoing, c.caps.sendBatch)
	c.buckets = make([]bucket, len(peers))
	c.in = make([]incoming, c.caps.recvBatch)
	return nil
}

// LocalAddr returns the address that the rank is bound to.
func (c *Conn) LocalAddr() netip.AddrPort { return c.local }

// Reliable returns false: datagrams may be lost, duplicated or reordered.
func (c *Conn) Reliable() bool { return false }

// Discovers reports whether packets of the extended profile are fragmented only if Packet.Fragment allows it.
func (c *Conn) Discovers() bool { return c.caps.modes }

// LongestDatagram returns the maximum length of a datagram to a peer, in bytes, as far as the system knows the path: it
// is derived from the MTU of the interface, or from a smaller one reported by routers. It returns 0 if unknown.
func (c *Conn) LongestDatagram(peer int) int {
	if !c.cfg.Map.Has(peer) {
		return 0
	}
	c.sending.Lock() // the move of Prepare changes the peer's address
	defer c.sending.Unlock()
	return min(c.sock.longest(peer), MaxDatagram)
}

// ReceiveBuffer returns the requested and the granted size of the receive buffer, in bytes. Datagrams that do not fit
// are lost silently. On Linux, the sysctl net.core.rmem_max is the limit.
func (c *Conn) ReceiveBuffer() (asked, granted int) { return c.asked, c.granted }

// Close closes the socket. A Recv in progress returns mpe.ErrTransportClosed.
func (c *Conn) Close() error { return c.sock.close() }
