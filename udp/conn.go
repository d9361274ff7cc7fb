package udp

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/bindfault"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
)

// Conn is the UDP socket of one rank. It implements mpe.PollTransport.
type Conn struct {
	cfg       Config
	localAddr netip.AddrPort
	sock      socket
	caps      capabilities
	// requestedBuffer and grantedBuffer are the requested and the actual size of the receive buffer, in bytes.
	requestedBuffer, grantedBuffer int
	dropTotal                      dropSum

	// sendMu guards outBatch, buckets and calls of sock.send.
	sendMu   sync.Mutex
	outBatch []outgoing
	buckets  []bucket // by peer

	// peerMap contains the current addresses of the peers. It is Config.Map until the function returned by Prepare
	// changes the addresses.
	peerMap atomic.Pointer[rankmap.Map]

	inBatch []incoming
	peekBuf [protocol.ExtHeaderLen]byte // beginning of the datagram that Poll peeks at
	// lastPeer is the rank of the address lastFrom in lastMap. It caches the result of the last look-up.
	lastFrom netip.AddrPort
	lastPeer int
	lastMap  *rankmap.Map
}

var (
	_ mpe.PollTransport      = (*Conn)(nil)
	_ mpe.HandshakeTransport = (*Conn)(nil)

	_ mpe.DatagramTransport = (*Conn)(nil)
)

// Listen opens a Conn bound to the rank's IP address and port in the rank map. It returns a *ListenError if that
// address is not available.
func Listen(cfg Config) (*Conn, error) {
	switch {
	case cfg.Impair != nil:
		return listen(cfg, newImpairedSocket)
	case cfg.OpenPath != nil:
		return listen(cfg, openPathSocket)
	}
	return listen(cfg, newSocket)
}

// opener makes a socket from a net.UDPConn. On success it takes ownership of the net.UDPConn.
type opener func(conn *net.UDPConn, peers []netip.AddrPort, cfg *Config) (socket, error)

// listen implements Listen with the given kind of socket. On failure it closes only a socket that it has bound itself.
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
	conn := &Conn{cfg: cfg, localAddr: addr, requestedBuffer: cfg.ReceiveBuffer, lastPeer: mpe.UnknownPeer}
	conn.peerMap.Store(cfg.Map)
	if err := conn.openSocket(udpConn, open); err != nil {
		if cfg.Socket == nil {
			udpConn.Close()
		}
		return nil, fmt.Errorf("udp: setting up the socket of rank %d at %v: %w", cfg.Rank, addr, err)
	}
	return conn, nil
}

// maxReceiveBuffer is the maximum size of the receive buffer. Linux uses twice the size internally, which must fit into
// an int32.
const maxReceiveBuffer = 1 << 29

func (c *Conn) openSocket(udpConn *net.UDPConn, open opener) (err error) {
	if c.grantedBuffer, err = SetReceiveBuffer(udpConn, c.requestedBuffer); err != nil {
		return fmt.Errorf("asking for a receive buffer of %d bytes: %w", c.requestedBuffer, err)
	}
	peers := addresses(c.cfg.Map)
	if c.sock, err = open(udpConn, peers, &c.cfg); err != nil {
		return err
	}
	c.caps = c.sock.capabilities()
	c.outBatch = make([]outgoing, c.caps.sendBatch)
	c.buckets = make([]bucket, len(peers))
	c.inBatch = make([]incoming, c.caps.recvBatch)
	return nil
}

// LocalAddr returns the address that the rank is bound to.
func (c *Conn) LocalAddr() netip.AddrPort { return c.localAddr }

// Reliable returns false: datagrams may be lost, duplicated or reordered.
func (c *Conn) Reliable() bool { return false }

// Discovers reports whether path MTU discovery is possible: it requires that packets of the extended profile are
// fragmented only if Packet.Fragment allows it.
func (c *Conn) Discovers() bool { return c.caps.supportsModes }

// LongestDatagram returns the maximum length of a datagram to a peer, in bytes, or 0 if unknown. The length follows
// from the MTU of the interface, or from a smaller MTU reported by a router.
func (c *Conn) LongestDatagram(peer int) int {
	if !c.cfg.Map.Has(peer) {
		return 0
	}
	c.sendMu.Lock() // the function returned by Prepare may change the peer's address
	defer c.sendMu.Unlock()
	return min(c.sock.pathDatagramLen(peer), MaxDatagram)
}

// ReceiveBuffer returns the requested and the granted size of the receive buffer, in bytes. Datagrams that do not fit
// into the buffer are lost silently. On Linux, the sysctl net.core.rmem_max limits the size.
func (c *Conn) ReceiveBuffer() (asked, granted int) { return c.requestedBuffer, c.grantedBuffer }

// Path returns the state of the path past the kernel's socket, or nil if Config.OpenPath is nil.
func (c *Conn) Path() *state.Path {
	s, ok := c.sock.(interface{ pathState() *state.Path })
	if !ok {
		return nil
	}
	return s.pathState()
}

// Close closes the socket. A pending Recv returns mpe.ErrTransportClosed.
func (c *Conn) Close() error { return c.sock.close() }
