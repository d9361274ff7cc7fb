package network

import (
	"errors"
	"fmt"
	"math"

	"github.com/zrlmpi/zrlmpid/lab/sim"
)

// Link is what a message takes between two ranks. Times are in nanoseconds.
type Link struct {
	// Latency is L: from the interface of the sender to that of the receiver.
	Latency float64
	// Overhead is o: the processor time of a message at each end; OverheadByte is O, that of a byte.
	Overhead, OverheadByte float64
	// Gap is g: the time for which a message holds an interface at least; GapByte is G, that of a byte.
	Gap, GapByte float64
	// Eager is S: longer messages wait for their receive, and are acknowledged. Below 0, all do.
	Eager int
	// Pulls: the receiver of a message longer than Eager copies it from the sender's memory.
	Pulls bool
}

// Host is what ranks do without messages. Times are in nanoseconds.
type Host struct {
	// Call is what a call takes in itself.
	Call float64
	// Copy and Reduce are what a byte takes that is copied, or combined with another.
	Copy, Reduce float64
	// Publish is what it takes to publish in a shared buffer, or to read that something was
	// published, and Visible the time until others can.
	Publish, Visible float64
	// Switch is the time slice of a rank that waits, on hosts with fewer cores than ranks: it polls
	// once and yields.
	Switch float64
}

// Parameters are what is fitted to measurements.
type Parameters struct {
	Host Host
	// Memory is between ranks of a host, and Network between hosts.
	Memory, Network Link
}

// Cluster is ranks on hosts. Ranks of a host have successive numbers.
type Cluster struct {
	Ranks int
	// PerHost is how many ranks a host has, and Cores how many cores; 0 is one for each rank.
	PerHost, Cores int
	// Loopback: ranks of a host exchange messages by Network as well, without an interface, and
	// share no memory.
	Loopback bool
	// Blocking: ranks do one step at a time, as FPGAs with the profile cloudfpga do.
	Blocking bool
	// PerSwitch is how many hosts a switch has; 0 is all. Messages between switches take Uplink in
	// addition, of which Latency, Gap and GapByte count.
	PerSwitch int
	// Barrier: a rank begins the call when it has ended a barrier, as in measurements. Otherwise all begin at once.
	Barrier bool
	Uplink  Link
	Parameters
}

// The bounds of a Cluster.
const (
	MaxRanks = 1 << 16
	// maxTime is the longest time that a parameter may have, in nanoseconds.
	maxTime = 1e9
)

// ErrCluster matches every *ClusterError.
var ErrCluster = errors.New("impossible cluster")

// ClusterError says what of a Cluster is impossible.
type ClusterError struct{ Problem string }

func (e *ClusterError) Error() string { return e.Problem }

// Is reports whether target is ErrCluster.
func (e *ClusterError) Is(target error) bool { return target == ErrCluster }

// Check returns what is wrong with the cluster, as a *ClusterError.
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

// hosts returns how many there are.
func (c *Cluster) hosts() int { return (c.Ranks + c.PerHost - 1) / c.PerHost }

// Shared reports whether all ranks share memory.
func (c *Cluster) Shared() bool { return c.hosts() == 1 && !c.Loopback }

// The shared buffers of the ranks of a host: for so many ranks, and so many bytes of a call.
const (
	sharedRanks = 64
	sharedBytes = 256 << 10
)

// SharedBytes is coll.Call.Shared of calls of all ranks.
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

// cycles is a time in cycles.
func cycles(ns float64) sim.Cycle { return sim.Cycle(math.Round(ns * 1000)) }
