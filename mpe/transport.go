package mpe

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/core"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Transport carries the packets of one local rank. It is the engine's only interface to the network; packages
// udp, tcp and shm implement it.
//
// One goroutine calls Recv, concurrently with the Send methods. If the transport is Reliable, at most one Send call per
// peer is in progress at a time; otherwise at most one in total, except for paced messages. Any goroutine may call
// Close, which makes a pending Recv return ErrTransportClosed and Send calls fail.
type Transport interface {
	// LocalAddr returns the address that the rank is bound to.
	LocalAddr() netip.AddrPort
	// Reliable reports whether packets arrive exactly once and in order as long as a connection lasts. If they do, the
	// engine needs no retransmission timer.
	Reliable() bool
	// Recv waits for packets, stores 1 to len(batch) of them in batch, and returns their number. Their bytes are valid
	// until the next call of Recv.
	Recv(batch []RxPacket) (int, error)
	// SendPackets sends packets of the extended profile to peer in order, and returns the number that the network
	// accepted. The peer's Recv returns each packet whole, as an RxDatagram. SendPackets does not block: it drops
	// packets that the network cannot accept. Such a loss is not an error, because the engine retransmits packets until
	// they are acknowledged. The caller may reuse the memory when the call returns.
	SendPackets(peer int, packets []Packet) (int, error)
	// Close releases the socket.
	Close() error
}

// ErrTransportClosed is returned by Recv after Close.
var ErrTransportClosed = errors.New("transport is closed")

// PollTransport is a Transport that can be polled, which saves several microseconds of latency compared with waiting in
// the kernel. An engine polls up to progress.MaxDrivers such transports, and never calls their Recv.
type PollTransport interface {
	Transport
	// CanPoll reports whether the system has an efficient way to poll the transport and to wake its poller. If not, the
	// caller must not call the other methods.
	CanPoll() bool
	// Poll is like Recv, but returns 0 if no packet is available. One goroutine at a time calls it, concurrently with
	// the Send methods. After Close, Poll returns ErrTransportClosed.
	//
	// If at is not nil, it probably contains a placement for the next payload. To save a copy, a transport may make the
	// system write payload directly into a placement; the RxPacket then refers to that memory. The system may write
	// unexpected packets there, too. Poll does not change the placements.
	Poll(batch []RxPacket, at *Placements) (int, error)
	// Wakeup returns a file descriptor, valid until Close, that becomes readable when a packet arrives after Sleep, or
	// when Close is called.
	Wakeup() int
	// Sleep announces that the caller will not call Poll before the descriptor of Wakeup is readable. It reports false
	// if packets are already available; the caller must then call Poll first. Like Poll, it is called by one goroutine
	// at a time.
	Sleep() bool
}

// Placements holds the placements of a transport's peers, at most one per peer.
type Placements struct {
	byPeer []Placement
	peers  []int // with a placement
}

// Set sets the placement of the peer at.Peer, or removes it if at.Buf is empty.
func (l *Placements) Set(at Placement) {
	for len(l.byPeer) <= at.Peer {
		l.byPeer = append(l.byPeer, Placement{})
	}
	i := slices.Index(l.peers, at.Peer)
	switch {
	case len(at.Buf) > 0 && i < 0:
		l.peers = append(l.peers, at.Peer)
	case len(at.Buf) == 0 && i >= 0:
		l.peers = slices.Delete(l.peers, i, i+1)
	}
	l.byPeer[at.Peer] = at
}

// ForPeer returns the placement of a peer, or nil.
func (l *Placements) ForPeer(peer int) *Placement {
	if peer < 0 || peer >= len(l.byPeer) || len(l.byPeer[peer].Buf) == 0 {
		return nil
	}
	return &l.byPeer[peer]
}

// Single returns the placement if there is exactly one, and nil otherwise.
func (l *Placements) Single() *Placement {
	if len(l.peers) != 1 {
		return nil
	}
	return &l.byPeer[l.peers[0]]
}

// Len returns the number of placements.
func (l *Placements) Len() int { return len(l.peers) }

// HandshakeTransport is a Transport that carries the packets of the cloudfpga and v0.9 profiles.
type HandshakeTransport interface {
	Transport
	// SendHeader sends a handshake packet of protocol.HeaderLen bytes. The caller may reuse header when the
	// call returns.
	SendHeader(peer int, header []byte) error
	// SendData sends a DATA message: header and payload, fragmented and padded according to shape. The caller may reuse
	// both when the call returns. A nil error means that the network accepted the message, not that it arrived.
	SendData(peer int, header, payload []byte, shape protocol.Shape) error
}

// DatagramTransport is a Transport of datagrams. It forbids the network to fragment packets of the extended profile,
// which must therefore fit the path MTU. If a packet is too long for the first link, SendPackets drops it and all later
// packets, and returns an error that matches EMSGSIZE. SendData paces messages to some peers.
type DatagramTransport interface {
	Transport
	// LongestDatagram returns the maximum length in bytes of a packet to a peer, including the header. It considers the
	// part of the path that the system knows, which includes at least the first link. 0 means unknown. The value may
	// change at any time.
	LongestDatagram(peer int) int
	// Paced reports whether SendData paces a message of the given length to peer. Such a SendData may run concurrently
	// with Send methods to other peers.
	Paced(peer, bytes int) bool
}

// MemoryTransport is a Transport through memory shared by ranks of a host. Recv returns each packet with a short header
// as an RxShort. The transport also provides shared buffers for collective calls; when an Await on one of them is done,
// Recv returns an RxPublished.
type MemoryTransport interface {
	Transport
	core.Memory
	collective.SharedBuffers
}
