package mpe

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/core"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Transport carries the packets of one local rank. The engine knows the network
// by this interface alone; packages udp, tcp and shm implement it.
//
// Recv is called by one goroutine, and runs concurrently with the Send methods.
// Of those, a transport that is not Reliable sees one call at a time, but for paced
// messages; a Reliable one sees one at a time per peer. Close may be called by any
// goroutine, and makes a Recv in progress return ErrTransportClosed and a Send fail.
type Transport interface {
	// LocalAddr is the address the rank is bound to.
	LocalAddr() netip.AddrPort
	// Reliable reports that packets arrive once and in order while a
	// connection lasts, so that to retransmit them on a timer is waste.
	Reliable() bool
	// Recv waits for packets and fills in at least one RxPacket, at most
	// len(batch). The bytes are valid until the next call of Recv.
	Recv(batch []RxPacket) (int, error)
	// SendPackets sends packets of the extended profile to peer in order, and returns how many the network took. Recv
	// gives each of them whole, as an RxDatagram. It does not block: a network that is full loses the rest, which is no
	// error, because packets are retransmitted until they are acknowledged. The bytes are the caller's again when the
	// call returns.
	SendPackets(peer int, packets []Packet) (int, error)
	// Close releases the socket.
	Close() error
}

// ErrTransportClosed is what Recv returns after Close.
var ErrTransportClosed = errors.New("transport is closed")

// PollTransport is a Transport that can be polled. Waiting in the
// kernel costs several microseconds more than polling a few times. An engine
// never calls Recv of one that can be polled.
type PollTransport interface {
	Transport
	// CanPoll reports whether the system has a quick way to poll, and one to
	// be woken: the other methods are for then.
	CanPoll() bool
	// Poll is Recv, but returns 0 if nothing has arrived. It is called by one goroutine at a time, and runs
	// concurrently with the Send methods. After Close it returns ErrTransportClosed.
	//
	// If at is not nil, what arrives next is likely to be what one of these placements is for. A transport may have the
	// system put its payload there, which spares a copy: what the RxPacket describes lies there then. Whatever else
	// arrives may have been written to any of them as well. The placements are not changed.
	Poll(batch []RxPacket, at *Placements) (int, error)
	// Wakeup returns a file descriptor, valid until Close, that becomes
	// readable when something arrives after Sleep, and when Close is called.
	Wakeup() int
	// Sleep announces that Poll will not be called before Wakeup's descriptor is
	// readable. It reports false if something has arrived that Poll has not
	// returned: then it is to be called first. It is called as Poll is.
	Sleep() bool
}

// Placements are those of a transport's peers, at most one of each.
type Placements struct {
	byPeer []Placement
	peers  []int // that have one
}

// Set sets the placement of at.Peer. One without Buf is none.
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

// Of returns the placement of a peer, or nil.
func (l *Placements) Of(peer int) *Placement {
	if peer < 0 || peer >= len(l.byPeer) || len(l.byPeer[peer].Buf) == 0 {
		return nil
	}
	return &l.byPeer[peer]
}

// Only returns the placement if there is one only, and nil otherwise.
func (l *Placements) Only() *Placement {
	if len(l.peers) != 1 {
		return nil
	}
	return &l.byPeer[l.peers[0]]
}

// Len is how many there are.
func (l *Placements) Len() int { return len(l.peers) }

// HandshakeTransport is a Transport that carries the packets of the cloudfpga and v0.9
// profiles.
type HandshakeTransport interface {
	Transport
	// SendHeader sends one handshake packet of protocol.HeaderLen bytes. The
	// slice is the caller's again when the call returns.
	SendHeader(peer int, header []byte) error
	// SendData sends one DATA message: header and payload, fragmented and
	// padded as shape says. payload is read until the call returns, never afterwards.
	// A nil error says that the network took it, not that it arrived.
	SendData(peer int, header, payload []byte, shape protocol.Shape) error
}

// DatagramTransport is a Transport of datagrams. It keeps the network from fragmenting packets of the extended profile,
// so that they have to fit into what the path carries: SendPackets returns an error that is EMSGSIZE for one that is too
// long for the first link, and loses it and those after it. And it spreads messages to some peers over time.
type DatagramTransport interface {
	Transport
	// LongestDatagram returns how many bytes a packet to peer, header included, may have by
	// what the system knows of the path: at least what the first link carries. It is 0 if
	// the system does not know. It may change at any time.
	LongestDatagram(peer int) int
	// Paced reports whether SendData spreads a message of so many bytes to a peer over
	// time. It may run concurrently with other Send methods then, except
	// those to the same peer.
	Paced(peer, bytes int) bool
}

// MemoryTransport is a Transport through memory that ranks of a host share. Recv gives a packet with a short header
// whole, as an RxShort. It has shared buffers for collective calls, of which an Await ends with an RxPublished.
type MemoryTransport interface {
	Transport
	core.Memory
	collective.SharedBuffers
}
