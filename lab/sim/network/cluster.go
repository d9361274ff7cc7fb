package network

import (
	"errors"
	"fmt"
	"math"

	"github.com/zrlmpi/zrlmpid/lab/sim"
)

// Link holds the LogGOPS parameters of a message between two ranks. Times are in nanoseconds.
type Link struct {
	// Latency (L) is the time from the sender's interface to the receiver's.
	Latency float64
	// Overhead (o) is the processor time per message at each end, and OverheadByte (O) the processor time per byte.
	Overhead, OverheadByte float64
	// Gap (g) is the minimum time for which a message occupies an interface, and GapByte (G) the time per byte.
	Gap, GapByte float64
	// Eager (S) is the maximum length of an eager message. Longer messages wait until their receive is posted, and are
	// acknowledged. A negative Eager disables eager messages.
	Eager int
	// Pulls reports whether the receiver copies messages longer than Eager from the sender's memory.
	Pulls bool
}

// Host holds the costs of local work on a host, in nanoseconds.
type Host struct {
	// Call is the fixed cost of a call.
	Call float64
	// Copy and Reduce are the costs per byte of copying data and of reducing it.
	Copy, Reduce float64
	// Publish is the cost of publishing in a shared buffer, and also of reading a publication. Visible is the delay
	// until other ranks see it.
	Publish, Visible float64
	// Switch is the time slice of a waiting rank on a host that has fewer cores than ranks. In this time, the rank
	// polls once and yields the core.
	Switch float64
}

// Parameters contains the model's parameters that are fitted to measurements.
type Parameters struct {
	Host Host
	// Memory is the link between ranks on the same host, and Network the link between ranks on different hosts.
	Memory, Network Link
}

// Cluster describes ranks on hosts. The ranks on a host have consecutive numbers.
type Cluster struct {
	Ranks int
	// PerHost is the number of ranks on each host, and Cores the number of cores. If Cores is 0, each rank has a core.
	PerHost, Cores int
	// Loopback means that ranks on the same host also communicate over Network, without occupying an interface. They
	// share no memory.
	Loopback bool
	// Blocking means that ranks execute one step at a time, like FPGAs with the profile cloudfpga.
	Blocking bool
	// PerSwitch is the number of hosts per switch. 0 means that there is one switch for all hosts. Messages between
	// switches also cross an Uplink, of which only Latency, Gap and GapByte are used.
	PerSwitch int
	// Barrier means that each rank begins the call after a barrier, as in measurements. Otherwise, all ranks begin at
	// the same time.
	Barrier bool
	Uplink  Link
	Parameters
}

// Bounds of a Cluster.
const (
	MaxRanks = 1 << 16
	// maxTime is the maximum value, in nanoseconds, of a parameter that is a time.
	maxTime = 1e9
)

// ErrCluster matches every *ClusterError.
var ErrCluster = errors.New("impossible cluster")

// ClusterError reports that a Cluster is invalid.
type ClusterError struct{ Problem string }

func (e *ClusterError) Error() string { return e.Problem }

// Is reports whether target is ErrCluster.
func (e *ClusterError) Is(target error) bool { return target == ErrCluster }

// Check returns a *ClusterError if the cluster is invalid.
func (c *Cluster) Check() error {
	bad := func(format string, args ...any) error { return &ClusterError{fmt.Sprintf(format, args...)} }
	switch {
	case c.Ranks < 2 || c.Ranks > MaxRanks:
		return bad("%d ranks: must be 2 to %d", c.Ranks, MaxRanks)
	case c.PerHost < 1 || c.PerHost > MaxRanks:
		return bad("%d ranks of a host: must be 1 to %d", c.PerHost, MaxRanks)
	case c.Cores < 0 || c.Cores > MaxRanks:
		return bad("%d cores: must be 0 to %d", c.Cores, MaxRanks)
	case c.PerSwitch < 0 || c.PerSwitch > MaxRanks:
		return bad("%d hosts of a switch: must be 0 to %d", c.PerSwitch, MaxRanks)
	}
	for _, t := range c.timeParams() {
		if !(*t >= 0 && *t <= maxTime) {
			return bad("a time of %v ns: must be 0 to %v", *t, float64(maxTime))
		}
	}
	return nil
}

func (c *Cluster) timeParams() []*float64 {
	all := c.Parameters.timeParams()
	return append(all, c.Uplink.timeParams()...)
}

func (p *Parameters) timeParams() []*float64 {
	h := &p.Host
	all := []*float64{&h.Call, &h.Copy, &h.Reduce, &h.Publish, &h.Visible, &h.Switch}
	return append(append(all, p.Memory.timeParams()...), p.Network.timeParams()...)
}

func (l *Link) timeParams() []*float64 {
	return []*float64{&l.Latency, &l.Overhead, &l.OverheadByte, &l.Gap, &l.GapByte}
}

// hosts returns the number of hosts.
func (c *Cluster) hosts() int { return (c.Ranks + c.PerHost - 1) / c.PerHost }

// SharesMemory reports whether all ranks share memory.
func (c *Cluster) SharesMemory() bool { return c.hosts() == 1 && !c.Loopback }

// Limits of the memory that ranks on a host share: the number of ranks, and the number of bytes in a call.
const (
	sharedRanks = 64
	sharedBytes = 256 << 10
)

// SharedBytes returns the value that coll.Call.Shared has for a call in which all ranks take part.
func (c *Cluster) SharedBytes() int {
	if c.SharesMemory() && c.Ranks <= sharedRanks {
		return sharedBytes
	}
	return 0
}

// Oversubscribed reports whether each host has fewer cores than ranks.
func (c *Cluster) Oversubscribed() bool {
	last := c.Ranks - (c.hosts()-1)*c.PerHost
	return c.Cores > 0 && min(c.PerHost, last) > c.Cores
}

// toCycles converts nanoseconds to cycles.
func toCycles(ns float64) sim.Cycle { return sim.Cycle(math.Round(ns * 1000)) }
