package core

import (
	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/match"
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
	Handshake     handshake.Config
	Extended      *extended.Config
	Network       Network
	Unobserved    bool
	Recorder      PacketRecorder
	Keeper        Keeper
	Kind, Address string
}

// Network is what a core has to know of the network to a peer.
type Network struct {
	// ID distinguishes the networks of a rank, from 0 on.
	ID int
	// Reliable: packets arrive once and in order while a connection lasts.
	Reliable bool
	// Packets: it carries the extended profile. Short: also packets with short headers.
	Packets, Short bool
	// SingleCopy: payload may stay where its sender has it. Places: payload may be placed in a receive's buffer.
	SingleCopy, Places bool
	// Datagrams: it loses packets that are longer than the path carries.
	Datagrams bool
	// Shared: its ranks have shared buffers for collective calls.
	Shared bool
}
