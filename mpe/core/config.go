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
	// Rank is the local rank. Peers holds one entry per rank; the entry for the local rank is ignored.
	Rank  int
	Peers []Peer
	// Limits bounds the queues of each communicator. New raises the limit on unexpected messages by the number of messages
	// that the peers may send unasked.
	Limits      match.Limits
	Collectives collective.Config
	// Shared provides the shared buffers for collective calls; nil if no network provides any.
	Shared collective.SharedBuffers
	// Observer and Calls may be nil.
	Observer Observer
	Calls    CallRecorder
	// Reports makes the core answer ranks that ask for this rank's report.
	Reports bool
}

// Peer configures how a core exchanges messages with one peer. Its fields are documented at mpe.Peer.
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
	// ID is the index of the network among the rank's networks.
	ID int
	// Reliable means that the network delivers packets exactly once and in order while a connection lasts.
	Reliable bool
	// Memory is the network itself if it is memory shared by ranks, and nil otherwise.
	Memory Memory
	// Places means that the network can place payload directly in the buffer of a receive.
	Places bool
	// Datagrams means that the network loses packets longer than the path MTU.
	Datagrams bool
}

// Memory is a network through memory shared by ranks. It carries packets with short headers. It may also leave the
// payload of a long packet in the sender's memory; the receiver then copies the payload directly to its destination.
type Memory interface {
	// SendShort sends a packet with a short header to peer, in order with other packets, and reports whether the
	// network accepted it. The caller may reuse payload when the call returns.
	SendShort(peer int, h *protocol.ShortHeader, payload []byte) bool
	// LongPayload returns the maximum payload, in bytes, of a packet to peer whose payload stays in this rank's memory,
	// or 0 if the network copies all payload. The result changes only with an RxConnected of the peer.
	LongPayload(peer int) int
	// Fetch copies the payload of a from its sender's memory to dst, which must be a.RemoteBytes long. a must be from
	// the last Poll or Recv. Fetch reports false if the payload is gone, or not available without waiting: the packet
	// is then lost, or arrives again once its payload is available, and the contents of dst are undefined. Fetch never
	// writes to dst after it returns.
	Fetch(a *RxPacket, dst []byte) bool
	// Get fills dst with the beginning of a message that peer advertises. It reports false, and leaves the contents of
	// dst undefined, if the message is no longer available, is shorter than dst, or is not available without waiting.
	// Any goroutine may call Get at any time, once for each RxPacket.Advertised.
	Get(peer int, advertised uint64, dst []byte) bool
	// Invalidate ends the peer's access to the memory exposed under number, without waiting for the peer. The peer
	// loses all bytes that it has not copied yet.
	Invalidate(peer int, number uint64)
}
