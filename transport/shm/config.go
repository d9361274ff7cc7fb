package shm

import (
	"fmt"
	"math/bits"
	"os"

	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
)

// Config says which rank a Conn is.
type Config struct {
	// Rank is the local rank, and Map says where it and its peers are. The
	// peers are the other ranks of kind rankmap.Software; all of them must run
	// on this host, as the same user.
	Rank int
	Map  *rankmap.Map
	// Directory is the path of the directory of a job, in which its ranks on this host have their sockets. Without one,
	// the ranks are those of a configuration: they find each other by their addresses, in the directories of their
	// user.
	Directory string
	// Ring is the size in bytes of the ring from a rank to another: a power of
	// two, MinRing to MaxRing. 0 is DefaultRing. The lower rank's counts.
	Ring int
	// NoSingleCopy has all payload copied into the ring and out of it, whatever
	// its length, in both directions. EnvSingleCopy can set it.
	NoSingleCopy bool
	// Pipelined has long payload copied into the ring and out of it as well, except for a
	// message that is advertised by a peer whose callers do not poll. Both sides copy at once,
	// so it is faster than a single copy if each rank has a core, and else slower.
	Pipelined bool
}

// EnvSingleCopy names an environment variable that sets Config.NoSingleCopy for every
// Conn that the process opens if it is "off". "auto" and "" leave it to the Config;
// anything else is an error of Listen. It is for finding out whether reading other
// processes' memory is at fault, and for testing what happens without.
const EnvSingleCopy = "ZRLMPI_SINGLE_COPY"

// applyEnv lets the environment switch reading by reference off.
func (c *Config) applyEnv() error {
	switch v := os.Getenv(EnvSingleCopy); v {
	case "", "auto":
	case "off":
		c.NoSingleCopy = true
	default:
		return fmt.Errorf("shm: %s: %q is not known: it is auto or off", EnvSingleCopy, v)
	}
	return nil
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

// SharedHalf is how many bytes of its shared buffer a rank has for a collective call.
const SharedHalf = 256 << 10

// MaxPayload is the longest payload in bytes of a packet that is copied into the ring.
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
