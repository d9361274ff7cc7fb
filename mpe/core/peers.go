package core

import (
	"math"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// peerTable holds the peers of a core by rank. A peer of a handshake profile is created with its first use: in a large
// cluster, most ranks exchange messages with few others.
type peerTable struct {
	core *Core
	// list holds each peer, or nil for the local rank and for a peer that has not been in use.
	list []*peer
	// limits holds the limits of each peer, also before its first use, and nil for the local rank. It does not change,
	// so that it can be read without a lock.
	limits []*wireLimits
}

func (t *peerTable) init(core *Core, ranks int) {
	t.core, t.list, t.limits = core, make([]*peer, ranks), make([]*wireLimits, ranks)
}

// at returns the peer of the given rank, which it creates if necessary, or nil for the local rank.
func (t *peerTable) at(rank int) *peer {
	if p := t.list[rank]; p != nil || rank == t.core.rank {
		return p
	}
	return t.create(rank)
}

func (t *peerTable) create(rank int) *peer {
	cfg := t.core.cfg.Peers[rank]
	cfg.configure(t.core.rank, rank)
	t.list[rank] = newPeer(t.core, rank, cfg)
	return t.list[rank]
}

// created yields the peers that have been created, in rank order.
func (t *peerTable) created(yield func(*peer) bool) {
	for _, p := range t.list {
		if p != nil && !yield(p) {
			return
		}
	}
}

// maxListedUnused is the maximum size of a cluster in which Snapshot also lists the peers that have not been in use.
// Otherwise, the state of a process that runs all ranks of a large cluster would be larger than tools accept.
const maxListedUnused = 64

// listed returns the peer of the given rank if Snapshot lists it, and nil otherwise.
func (t *peerTable) listed(rank int) *peer {
	if len(t.list) <= maxListedUnused {
		return t.at(rank)
	}
	return t.list[rank]
}

// numListed returns the number of peers that Snapshot lists.
func (t *peerTable) numListed() (n int) {
	if len(t.list) <= maxListedUnused {
		return len(t.list) - 1
	}
	for range t.created {
		n++
	}
	return n
}

// wireLimits describes what the wire of a peer can carry. It does not change, so that Check can use it without a lock.
// Peers with the same limits may share it.
type wireLimits struct {
	profile protocol.Profile
	// limits describes what the profile cannot carry. maxLength is the maximum length of a message in bytes. Messages
	// of up to uncheckedLen bytes need no further check; -1 means that all messages need one.
	limits       PeerInfo
	maxLength    int64
	uncheckedLen int
}

// limitsCache holds the limits of handshake links by their profile and whether their peer refuses empty messages.
type limitsCache map[limitsKey]*wireLimits

type limitsKey struct {
	profile      protocol.Profile
	refusesEmpty bool
}

// find returns the limits of a link.
func (c limitsCache) find(cfg *handshake.Config) *wireLimits {
	key := limitsKey{cfg.Profile, cfg.Peer.RefusesEmpty}
	if c[key] == nil {
		c[key] = &wireLimits{profile: key.profile, maxLength: math.MaxInt64, uncheckedLen: -1, limits: PeerInfo{
			Words: true, NoComms: true, NoLength: true, NoTags: key.profile == protocol.CloudFPGA,
			SmallTags: key.profile != protocol.CloudFPGA, NoEmpty: key.refusesEmpty,
		}}
	}
	return c[key]
}

// extendedLimits returns the limits of a link of the extended profile.
func extendedLimits(maxLength int64) *wireLimits {
	return &wireLimits{profile: protocol.Extended, maxLength: maxLength,
		uncheckedLen: int(min(maxLength, math.MaxInt))}
}
