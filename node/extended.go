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

// What a rank lets all its extended peers together send before receives match
// (E20), and the least and most of that for each.
const (
	eagerLimit    = 64 << 10
	notSaid       = -1 // an eager limit that the configuration does not give
	allEager      = 64 << 20
	maxPeerEager  = 1 << 20
	maxPeerCredit = 1 << 16
	minPeerCredit = 64
)

// streamWindow is how many packets may be in flight over TCP: a little less than
// the transport queues for a peer.
const streamWindow = tcp.DefaultSendQueue/(protocol.ExtHeaderLen+protocol.MaxStreamPayload) - 16

// extendedBuiltIn fills in what the extended profile adds to a built-in link.
func extendedBuiltIn(l *config.Link, cfg *config.Config) {
	peers := otherRanks(cfg)
	l.EagerLimit = notSaid
	l.EagerCredit = config.Size(min(max(allEager/peers, eagerLimit), maxPeerEager))
}

// messageCredit returns how many messages each peer may begin at first before receives match. Three quarters of what
// the rank has room for, at least, are for those whose messages pile up.
func messageCredit(cfg *config.Config) int {
	return min(max(cfg.Limits.Unexpected/(4*otherRanks(cfg)), minPeerCredit), maxPeerCredit)
}

// otherRanks returns the number of a rank's peers, and 1 if it has none.
func otherRanks(cfg *config.Config) int { return max(len(cfg.Ranks)-1, 1) }

// extendedConfig returns the state machine's view of the link.
func (l *Link) extendedConfig(cfg *config.Config) *extended.Config {
	x := &extended.Config{
		MaxPayload: l.MaxDatagram - protocol.ExtHeaderLen, EagerLimit: int(l.EagerLimit),
		Messages: messageCredit(cfg), EagerBytes: int(l.EagerCredit), Seed: seed(),
	}
	if l.EagerLimit == 0 {
		x.EagerLimit = -1 // none
	}
	switch l.Transport {
	case config.TransportTCP:
		x.MaxPayload, x.Window = protocol.MaxStreamPayload, streamWindow
	case config.TransportSHM:
		x.MaxPayload = shm.MaxPayload
		x.Window, x.WindowBytes = shm.Window(ringOf(cfg))
	}
	// Within a host memory is all that payload goes through.
	x.HeaderChecksum = l.Transport == config.TransportSHM || l.sameHost
	x.Timing = extended.DefaultTiming(l.Transport != config.TransportUDP)
	x.Timing.UnreachableAfter = l.Deadlines.Ack
	return x
}

// ringOf returns the size in bytes of the rings in shared memory.
func ringOf(cfg *config.Config) int { return shm.DefaultRing(len(cfg.Ranks)) }

// seed returns a number that no other link, and no earlier start, has.
func seed() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}
