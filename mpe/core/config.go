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
	// Rank is the local rank, and Peers has an entry per rank, of which the local one's is ignored.
	Rank        int
	Peers       []Peer
	Limits      match.Limits
	Collectives collective.Config
	// Shared are the shared buffers of the network that has some, or nil.
	Shared collective.SharedBuffers
	// Observer and Calls may be nil.
	Observer Observer
	Calls    CallRecorder
	// Reports: other ranks are answered that ask for this one's report.
	Reports bool
}

// Peer configures a peer of a core. Its fields are as in Peer.
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

// Network is what a core has to know of the network to a peer.
type Network struct {
	// ID distinguishes the networks of a rank, from 0 on.
	ID int
	// Reliable: packets arrive once and in order while a connection lasts.
	Reliable bool
	// Memory is the memory that the network consists of, or nil.
	Memory Memory
	// Places: payload may be placed in a receive's buffer.
	Places bool
	// Datagrams: it loses packets that are longer than the path carries.
	Datagrams bool
}

// Memory is a network through memory that ranks share. It carries packets with a short header; and it may leave the
// payload of long packets where it is, in their sender's memory, for the receiver to copy it from there to where it
// belongs.
type Memory interface {
	// SendShort sends a packet with a short header to peer, in order with the others. It reports false if the network
	// did not take it. The bytes are the caller's again when the call returns.
	SendShort(peer int, h *protocol.ShortHeader, payload []byte) bool
	// LongPayload returns the most bytes of payload that a packet to peer may have if they are exposed, or 0 if all
	// payload is copied to be sent. It may change whenever an RxConnected of the peer arrives, and only then.
	LongPayload(peer int) int
	// Fetch copies the payload that is away of an RxPacket of the last Poll or Recv to dst, which has as many bytes. It
	// reports false if the payload is not to be had any more, or would have to be waited for. Then the packet is lost,
	// or arrives again when its payload can be had, and what dst holds is undefined. Nothing is written to dst later.
	Fetch(a *RxPacket, dst []byte) bool
	// Get copies the beginning of a message that peer advertises to dst. It reports false if that is not available any
	// more, or has fewer bytes, or would have to be waited for; what dst holds is undefined then. It may be called once
	// for each RxPacket.Advertised, at any time, by any goroutine.
	Get(peer int, advertised uint64, dst []byte) bool
	// Invalidate ends the reading of what was exposed to peer under that number. It does not wait. What the peer has
	// not copied by then is lost.
	Invalidate(peer int, number uint64)
}
