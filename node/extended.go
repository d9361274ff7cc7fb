package node

import (
	"crypto/rand"
	"encoding/binary"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/shm"
	"github.com/zrlmpi/zrlmpid/transport/tcp"
)

// Limits of the data that extended peers may send before receives match (E20). One applies to all peers together, the
// other to each peer.
const (
	eagerLimit      = 64 << 10
	eagerLimitUnset = -1 // the configuration does not set an eager limit
	totalEager      = 64 << 20
	maxPeerEager    = 1 << 20
	maxPeerCredit   = 1 << 16
	minPeerCredit   = 64
)

// streamWindow is the maximum number of packets in flight over TCP. It is slightly smaller than the transport's queue
// for a peer.
const streamWindow = tcp.DefaultSendQueue/(protocol.ExtHeaderLen+protocol.MaxStreamPayload) - 16

// setExtendedBuiltIn sets the options of the extended profile in a built-in link.
func setExtendedBuiltIn(l *config.Link, cfg *config.Config) {
	peers := otherRanks(cfg)
	l.EagerLimit = eagerLimitUnset
	l.EagerCredit = config.Size(min(max(totalEager/peers, eagerLimit), maxPeerEager))
}

// messageCredit returns the number of messages that each peer may initially begin before receives match. At least three
// quarters of the rank's capacity remain for additional credit to peers with many unmatched messages.
func messageCredit(cfg *config.Config) int {
	return min(max(cfg.Limits.Unexpected/(4*otherRanks(cfg)), minPeerCredit), maxPeerCredit)
}

// otherRanks returns the number of a rank's peers, or 1 if it has no peers.
func otherRanks(cfg *config.Config) int { return max(len(cfg.Ranks)-1, 1) }

// extendedConfig returns the configuration of the extended state machine for the link.
func (l *Link) extendedConfig(cfg *config.Config) *extended.Config {
	x := &extended.Config{
		MaxPayload: l.MaxDatagram - protocol.ExtHeaderLen, EagerLimit: int(l.EagerLimit),
		Messages: messageCredit(cfg), EagerBytes: int(l.EagerCredit), Seed: newSeed(),
	}
	if l.EagerLimit == 0 {
		x.EagerLimit = -1 // none
	}
	switch l.Transport {
	case config.TransportTCP:
		x.MaxPayload, x.Window = protocol.MaxStreamPayload, streamWindow
	case config.TransportSHM:
		x.MaxPayload = shm.MaxPayload
		x.Window, x.WindowBytes = shm.Window(ringSize(cfg))
	}
	// Within a host, payload crosses only memory, so a checksum of the header is sufficient.
	x.HeaderChecksum = l.Transport == config.TransportSHM || l.sameHost
	x.Timing = extended.DefaultTiming(l.Transport != config.TransportUDP)
	x.Timing.UnreachableAfter = l.Deadlines.Ack
	return x
}

// ringSize returns the size, in bytes, of the rings in shared memory.
func ringSize(cfg *config.Config) int { return shm.DefaultRing(len(cfg.Ranks)) }

// newSeed returns a number that is different for each link and each start of a rank.
func newSeed() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}
