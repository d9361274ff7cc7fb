package shm

import (
	"math/bits"

	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/rankmap"
)

// Config says which rank a Conn is.
type Config struct {
	// Rank is the local rank, and Map says where it and its peers are. The
	// peers are the other ranks of kind rankmap.Software; all of them must run
	// on this host, as the same user.
	Rank int
	Map  *rankmap.Map
	// Ring is the size in bytes of the ring from a rank to another: a power of
	// two, MinRing to MaxRing. 0 is DefaultRing. The lower rank's counts.
	Ring int
}

// The sizes of a ring in bytes.
const (
	MinRing = 256 << 10
	MaxRing = 64 << 20
	// idealRing is as large as a ring needs to be: longer ones are no faster,
	// and push other things out of the caches.
	idealRing = 1 << 20
	// allRings is how much the rings to one rank have together, if that leaves
	// each of them MinRing. Memory that no packet has been in is not used.
	allRings = 16 << 20
)

// MaxPayload is the longest payload of a packet in bytes.
const MaxPayload = protocol.MaxStreamPayload

// DefaultRing returns the size in bytes of each ring in a cluster of so many ranks.
func DefaultRing(ranks int) int {
	each := allRings / max(ranks-1, 1)
	return min(max(1<<(bits.Len(uint(each))-1), MinRing), idealRing)
}

// Window returns how many packets, and how many bytes of payload, may be in flight
// to a peer so that a ring of that size always has room for them: there is some left
// for acknowledgements, for what is acknowledged but not given back yet, and for the
// end of the ring that the next packet does not fit into.
func Window(ring int) (packets, bytes int) { return ring / 2048, ring * 3 / 8 }
