package shm

import (
	"fmt"
	"math/bits"
	"os"

	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
)

// Config configures a Conn: its rank, the rank map, and how payload is copied.
type Config struct {
	// Rank is the local rank. Map has the addresses of all ranks; the peers are the other ranks of kind
	// rankmap.Software. All of them must run on this host, as the same user.
	Rank int
	Map  *rankmap.Map
	// Directory is the path of a job's directory, which holds the sockets of its ranks on this host. If it is
	// empty, the ranks are those of a configuration: they find each other by address, in the directories of
	// their user.
	Directory string
	// Ring is the size in bytes of the ring from one rank to another: a power of two, MinRing to MaxRing. 0
	// means DefaultRing. The setting of the lower rank applies to both directions.
	Ring int
	// NoSingleCopy makes all payload go through the ring, whatever its length, in both directions.
	// EnvSingleCopy can set it.
	NoSingleCopy bool
	// Pipelined makes long payload go through the ring as well, except for a message advertised by a peer whose
	// callers do not poll. Both sides copy at the same time, which is faster than a single copy if each rank
	// has a core, and slower otherwise.
	Pipelined bool
}

// EnvSingleCopy names an environment variable. "off" sets Config.NoSingleCopy for every Conn that the process
// opens; "auto" and "" leave it to the Config; any other value is an error of Listen. Use it to find out
// whether reading the memory of other processes causes a fault, and in tests.
const EnvSingleCopy = "ZRLMPI_SINGLE_COPY"

// applyEnv sets NoSingleCopy if the environment requests it.
func (c *Config) applyEnv() error {
	switch v := os.Getenv(EnvSingleCopy); v {
	case "", "auto":
	case "off":
		c.NoSingleCopy = true
	default:
		return fmt.Errorf("shm: %s: %q is not known: use auto or off", EnvSingleCopy, v)
	}
	return nil
}

// Sizes of a ring in bytes.
const (
	MinRing = 256 << 10
	MaxRing = 64 << 20
	// idealRing is the largest useful ring: longer ones are no faster, and evict other data from the caches.
	idealRing = 1 << 20
	// allRings is the total size of the rings to one rank, unless each of them would be shorter than MinRing.
	// Memory that no packet has used is not allocated.
	allRings = 16 << 20
)

// SharedHalf is the number of bytes of a shared buffer that one collective call may use.
const SharedHalf = 256 << 10

// MaxPayload is the longest payload in bytes of a packet that is copied into the ring.
const MaxPayload = protocol.MaxStreamPayload

// DefaultRing returns the size in bytes of each ring in a cluster with the given number of ranks.
func DefaultRing(ranks int) int {
	each := allRings / max(ranks-1, 1)
	return min(max(1<<(bits.Len(uint(each))-1), MinRing), idealRing)
}

// Window returns the number of packets, and of payload bytes, that may be in flight to a peer so that a ring of
// this size never overflows. It leaves space for acknowledgements, for acknowledged packets that are not yet
// released, and for the end of the ring that is too short for the next packet.
func Window(ring int) (packets, bytes int) { return ring / 2048, ring * 3 / 8 }
