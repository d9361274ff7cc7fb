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
	// Overhead (o) is the processor time per message at each end, OverheadByte (O) the processor time per byte.
	Overhead, OverheadByte float64
	// Gap (g) is the minimum time for which a message occupies an interface, GapByte (G) the time per byte.
	Gap, GapByte float64
	// Eager (S) is the maximum length of an eager message. Longer ones wait for their receive and are acknowledged. If
	// it is negative, all messages do.
	Eager int
	// Pulls reports whether the receiver of a message longer than Eager copies it from the sender's memory.
	Pulls bool
}

// Host holds the costs of local work on a host. Times are in nanoseconds.
type Host struct {
	// Call is the fixed cost of a call.
	Call float64
	// Copy and Reduce are the costs per byte of copying and of reducing.
	Copy, Reduce float64
	// Publish is the cost of publishing in a shared buffer, and of reading a publication. Visible is the delay until
	// other ranks see it.
	Publish, Visible float64
	// Switch is the time slice of a waiting rank on a host with fewer cores than ranks: the rank polls once and yields.
	Switch float64
}

// Parameters are the model parameters that are fitted to measurements.
type Parameters struct {
	Host Host
	// Memory connects ranks of one host, Network ranks of different hosts.
	Memory, Network Link
}

// Cluster describes ranks on hosts. Ranks of a host are numbered consecutively.
type Cluster struct {
	Ranks int
	// PerHost is the number of ranks per host, Cores the number of cores per host. 0 cores means one for each rank.
	PerHost, Cores int
	// Loopback means that ranks of one host also communicate over Network, without using an interface, and share no
	// memory.
	Loopback bool
	// Blocking means that ranks execute one step at a time, like FPGAs with the profile cloudfpga.
	Blocking bool
	// PerSwitch is the number of hosts per switch; 0 means one switch for all. Messages between switches also cross an
	// Uplink, for which only Latency, Gap and GapByte are used.
	PerSwitch int
	// Barrier means that each rank begins the call after a barrier, as in measurements. Otherwise all ranks begin at
	// the same time.
	Barrier bool
	Uplink  Link
	Parameters
}

// Bounds of a Cluster.
const (
	MaxRanks = 1 << 16
	// maxTime is the maximum of each time parameter, in nanoseconds.
	maxTime = 1e9
)

// ErrCluster matches every *ClusterError.
var ErrCluster = errors.New("impossible cluster")

// ClusterError describes an invalid Cluster.
type ClusterError struct{ Problem string }

func (e *ClusterError) Error() string { return e.Problem }

// Is reports whether target is ErrCluster.
func (e *ClusterError) Is(target error) bool { return target == ErrCluster }

// Check validates the cluster. The error is a *ClusterError.
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
	for _, t := range c.times() {
		if !(*t >= 0 && *t <= maxTime) {
			return bad("a time of %v ns: must be 0 to %v", *t, float64(maxTime))
		}
	}
	return nil
}

func (c *Cluster) times() []*float64 {
	all := c.Parameters.times()
	return append(all, c.Uplink.times()...)
}

func (p *Parameters) times() []*float64 {
	h := &p.Host
	all := []*float64{&h.Call, &h.Copy, &h.Reduce, &h.Publish, &h.Visible, &h.Switch}
	return append(append(all, p.Memory.times()...), p.Network.times()...)
}

func (l *Link) times() []*float64 {
	return []*float64{&l.Latency, &l.Overhead, &l.OverheadByte, &l.Gap, &l.GapByte}
}

// hosts returns the number of hosts.
func (c *Cluster) hosts() int { return (c.Ranks + c.PerHost - 1) / c.PerHost }

// Shared reports whether all ranks share memory.
func (c *Cluster) Shared() bool { return c.hosts() == 1 && !c.Loopback }

// Limits of the shared buffers of a host: number of ranks, and bytes per call.
const (
	sharedRanks = 64
	sharedBytes = 256 << 10
)

// SharedBytes returns the value of coll.Call.Shared for calls of all ranks.
func (c *Cluster) SharedBytes() int {
	if c.Shared() && c.Ranks <= sharedRanks {
		return sharedBytes
	}
	return 0
}

// Oversubscribed reports whether each host has fewer cores than ranks.
func (c *Cluster) Oversubscribed() bool {
	last := c.Ranks - (c.hosts()-1)*c.PerHost
	return c.Cores > 0 && min(c.PerHost, last) > c.Cores
}

// cycles converts nanoseconds to cycles.
func cycles(ns float64) sim.Cycle { return sim.Cycle(math.Round(ns * 1000)) }
