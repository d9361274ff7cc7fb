package cluster

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/zrlmpi/zrlmpid/config"
)

// Options are what a file leaves open.
type Options struct {
	// Addresses are given to the ranks of a cluster file, in rank order. The
	// resource manager's answer has its own; giving both is an error.
	Addresses Pool
	// Host are the ranks for host programs of this daemon, of either kind:
	// a host program can take an FPGA's place. Nil stands for the first CPU
	// rank; for no host at all, give an empty list.
	Host []int
	// StandIns makes stand-ins of all FPGA ranks that are not in Host.
	StandIns bool
	// FPGA are those ranks that the file lists as CPU and as FPGA, as
	// upstream's pingpong example does, and that are FPGAs in this run. Such
	// a rank that is not here is a CPU.
	FPGA []int
	// Kernel is what the stand-ins run, as in a configuration; empty is echo.
	Kernel string
}

// Config returns the cluster as a checked configuration. A rank that runs here
// is a host or a stand-in; of the others, FPGA ranks become remote FPGAs, and
// CPU ranks programs on upstream's CPU library. Collectives with FPGAs go as upstream's
// compiler makes them by the file's com_opt. Errors are of type *Error or
// *config.Error.
func (c *Cluster) Config(o Options) (*config.Config, error) {
	addrs, err := c.addresses(o.Addresses)
	if err != nil {
		return nil, err
	}
	if err := c.check(&o); err != nil {
		return nil, err
	}
	var kernel config.Kernel
	if o.Kernel != "" {
		if kernel, err = config.ParseKernel(o.Kernel); err != nil {
			return nil, &Error{Key: "kernel", Problem: err.Error()}
		}
	}
	ranks := make([]config.Rank, len(c.Nodes))
	standIns := 0
	for i, node := range c.Nodes {
		r := config.Rank{Rank: i, Address: config.Address{AddrPort: netip.AddrPortFrom(addrs[i], 0)}}
		fpga := node.FPGA && (!node.CPU || slices.Contains(o.FPGA, i))
		switch {
		case slices.Contains(o.Host, i):
			r.Run = config.RunHost
		case o.StandIns && fpga:
			r.StandIn(kernel)
			standIns++
		case fpga:
			r.Peer = config.PeerFPGA
		default:
			r.Peer = config.PeerCPU
		}
		ranks[i] = r
	}
	if o.Kernel != "" && standIns == 0 {
		return nil, &Error{Key: "kernel", Problem: "no rank runs as a stand-in here: name one, or give no kernel"}
	}
	cfg := config.New(ranks...)
	for _, unknown := range c.unknown {
		cfg.AddWarning(unknown.Error())
	}
	if c.ComOpt > 0 && len(c.FPGAs) > 0 {
		cfg.Collectives.Upstream, cfg.Collectives.FPGAs = config.UpstreamTree, c.FPGAs
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", c.File, err)
	}
	return cfg, nil
}

// addresses returns the address of each rank.
func (c *Cluster) addresses(pool Pool) ([]netip.Addr, error) {
	if c.Format == ClusterFile {
		if pool.IsZero() {
			return nil, c.errorf("", "a cluster file has no addresses: give the addresses of its %d ranks with --addresses, as in 127.0.0.1-127.0.0.%d",
				len(c.Nodes), min(len(c.Nodes), 254))
		}
		return pool.Take(len(c.Nodes))
	}
	if !pool.IsZero() {
		return nil, &Error{Key: "pool", Problem: "the resource manager's answer already has addresses: remove --addresses"}
	}
	addrs := make([]netip.Addr, len(c.Nodes))
	for i, node := range c.Nodes {
		addrs[i] = node.Addr
	}
	return addrs, nil
}

// check compares the options with the file, and fills in the default of Host.
func (c *Cluster) check(o *Options) error {
	for _, list := range []struct {
		key   string
		ranks []int
	}{{"host", o.Host}, {"fpga", o.FPGA}} {
		for _, rank := range list.ranks {
			if rank < 0 || rank >= len(c.Nodes) {
				return &Error{Key: list.key, Problem: fmt.Sprintf("there is no rank %d: the cluster has 0 to %d", rank, len(c.Nodes)-1)}
			}
			if list.key != "host" && !c.Nodes[rank].FPGA {
				return &Error{Key: list.key, Problem: fmt.Sprintf("rank %d is a CPU rank: list it as fpga in the file, or make it a host", rank)}
			}
		}
	}
	for _, rank := range o.Host {
		if slices.Contains(o.FPGA, rank) {
			return &Error{Key: "host", Problem: fmt.Sprintf("rank %d is to be an FPGA as well: choose one", rank)}
		}
	}
	if o.Host != nil {
		return nil
	}
	for rank, node := range c.Nodes {
		if node.CPU && !slices.Contains(o.FPGA, rank) {
			o.Host = []int{rank}
			break
		}
	}
	return nil
}
