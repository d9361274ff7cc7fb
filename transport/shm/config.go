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
	// Rank is the local rank. Map contains the addresses of all ranks. The peers are the other ranks of kind
	// rankmap.Software, all of which must run on this host as the same user.
	Rank int
	Map  *rankmap.Map
	// Directory is the path of a job's directory, which holds the sockets of the job's ranks on this host. If it is
	// empty, the ranks come from a configuration file, and each finds the others by address in directories of its user.
	Directory string
	// Ring is the size in bytes of the ring from one rank to another. It must be a power of two from MinRing to
	// MaxRing; 0 means DefaultRing. Both directions of a link use the lower rank's setting.
	Ring int
	// NoSingleCopy sends payload of any length through the ring, in both directions. EnvSingleCopy can set it.
	NoSingleCopy bool
	// Pipelined sends long payload through the ring as well, except between far processors, which share no
	// cache, and except for messages advertised by a peer whose callers do not poll. Both sides then copy at
	// the same time, which is faster than a single copy if each rank has its own core, and slower otherwise.
	Pipelined bool
}

// EnvSingleCopy is the name of an environment variable. If it is "off", every Conn opened by the process behaves as if
// Config.NoSingleCopy were set. If it is "auto" or empty, the Config decides. Any other value makes Listen fail. The
// variable serves tests, and shows whether reading the memory of other processes causes a fault.
const EnvSingleCopy = "ZRLMPI_SINGLE_COPY"

// applyEnv sets NoSingleCopy if EnvSingleCopy is "off". It returns an error if the value is invalid.
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
	// maxUsefulRing is the largest useful ring: longer ones are no faster, and evict other data from the caches.
	maxUsefulRing = 1 << 20
	// totalRingBytes is the total size of the rings to one rank in a cluster small enough that each ring is at least
	// MinRing. The system allocates memory only for pages that packets have used.
	totalRingBytes = 16 << 20
)

// SharedHalf is the number of bytes that one collective call may use in a shared buffer.
const SharedHalf = 256 << 10

// MaxPayload is the maximum payload length, in bytes, of a packet copied into the ring.
const MaxPayload = protocol.MaxStreamPayload

// DefaultRing returns the size in bytes of each ring in a cluster with the given number of ranks.
func DefaultRing(ranks int) int {
	each := totalRingBytes / max(ranks-1, 1)
	return min(max(1<<(bits.Len(uint(each))-1), MinRing), maxUsefulRing)
}

// Window returns the number of packets, and the number of payload bytes, that may be in flight to a peer without ever
// overflowing a ring of this size. The rest of the ring is for acknowledgements, for acknowledged packets not yet
// released, and for the unused end of the ring when the next packet does not fit there.
func Window(ring int) (packets, bytes int) { return ring / 2048, ring * 3 / 8 }
