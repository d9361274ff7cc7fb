package core

import (
	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/match"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Config configures a core.
type Config struct {
	// Rank is the local rank. Peers has an entry per rank; the entry of the local rank is ignored.
	Rank        int
	Peers       []Peer
	Limits      match.Limits
	Collectives collective.Config
	// Shared provides the shared buffers. It is nil if no network has any.
	Shared collective.SharedBuffers
	// Observer and Calls may be nil.
	Observer Observer
	Calls    CallRecorder
	// Reports enables answers to ranks that ask for this rank's report.
	Reports bool
}

// Peer configures a peer of a core. Its fields are documented at mpe.Peer.
type Peer struct {
	Handshake  handshake.Config
	Extended   *extended.Config
	Network    Network
	Unobserved bool
	Recorder   PacketRecorder
	Keeper     Keeper
	Kind       state.Kind
	Address    string
}

// Network describes the network to a peer.
type Network struct {
	// ID identifies the network among the networks of a rank, counted from 0.
	ID int
	// Reliable networks deliver packets once and in order while a connection lasts.
	Reliable bool
	// Memory is set if the network is memory that ranks share.
	Memory Memory
	// Places means that the network can place payload directly in the buffer of a receive.
	Places bool
	// Datagrams means that the network loses packets longer than the path MTU.
	Datagrams bool
}

// Memory is a network through memory that ranks share. It carries packets with a short header. It may also leave
// the payload of long packets in their sender's memory, from which the receiver copies it to its destination.
type Memory interface {
	// SendShort sends a packet with a short header to peer, in order with other packets. It reports false if
	// the network did not accept it. The caller may reuse payload when the call returns.
	SendShort(peer int, h *protocol.ShortHeader, payload []byte) bool
	// LongPayload returns the largest payload, in bytes, of a packet to peer that exposes its payload, or 0
	// if all payload is copied. It changes only when an RxConnected of the peer arrives.
	LongPayload(peer int) int
	// Fetch copies the payload of a from its sender's memory to dst, which has RxPacket.RemoteBytes bytes. a must be
	// from the last Poll or Recv. Fetch reports false if the payload is gone, or if it is not available without
	// waiting. The packet is then lost, or arrives again once its payload is available, and the contents of dst are
	// undefined. Nothing is written to dst after Fetch returns.
	Fetch(a *RxPacket, dst []byte) bool
	// Get fills dst with the beginning of a message that peer advertises. It reports false if the message is no
	// longer available, is shorter than dst, or is not available without waiting; then the contents of dst are
	// undefined. Any goroutine may call it, at any time, once for each RxPacket.Advertised.
	Get(peer int, advertised uint64, dst []byte) bool
	// Invalidate ends the peer's access to the memory exposed under number. It does not wait. The peer loses
	// everything that it has not copied yet.
	Invalidate(peer int, number uint64)
}
