package cluster

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/zrlmpi/zrlmpid/config"
)

// Options holds the choices that the file of a cluster does not determine.
type Options struct {
	// Addresses are assigned to the ranks of a cluster file, in rank order. The resource manager's answer includes
	// addresses, and Config rejects a Pool for it.
	Addresses Pool
	// Host lists the ranks for host programs of this daemon. They may be CPU or FPGA ranks: a host program can replace
	// an FPGA. Nil means the first CPU rank; an empty list means no host.
	Host []int
	// StandIns replaces all FPGA ranks outside of Host by stand-ins.
	StandIns bool
	// FPGA selects the FPGAs among the ranks that the file lists as both CPU and FPGA, like upstream's pingpong
	// example. The other ranks listed as both are CPUs.
	FPGA []int
	// Kernel is the kernel of the stand-ins, in the syntax of a configuration. Empty means echo.
	Kernel string
}

// Config returns the cluster as a validated configuration. Ranks that run here become hosts and stand-ins. Of the
// remaining ranks, FPGA ranks become remote FPGAs, and CPU ranks become programs on upstream's CPU library. Collectives
// with FPGAs use the form that upstream's compiler generates for the file's com_opt. Errors are of type *Error or
// *config.Error.
func (c *Cluster) Config(options Options) (*config.Config, error) {
	addrs, err := c.assignAddresses(options.Addresses)
	if err != nil {
		return nil, err
	}
	if err := c.checkOptions(&options); err != nil {
		return nil, err
	}
	var kernel config.Kernel
	if options.Kernel != "" {
		if kernel, err = config.ParseKernel(options.Kernel); err != nil {
			return nil, &Error{Key: "kernel", Problem: err.Error()}
		}
	}
	ranks := make([]config.Rank, len(c.Nodes))
	standIns := 0
	for i, node := range c.Nodes {
		rank := config.Rank{Rank: i, Address: config.Address{AddrPort: netip.AddrPortFrom(addrs[i], 0)}}
		fpga := node.FPGA && (!node.CPU || slices.Contains(options.FPGA, i))
		switch {
		case slices.Contains(options.Host, i):
			rank.Run = config.RunHost
		case options.StandIns && fpga:
			rank.MakeStandIn(kernel)
			standIns++
		case fpga:
			rank.Peer = config.PeerFPGA
		default:
			rank.Peer = config.PeerCPU
		}
		ranks[i] = rank
	}
	if options.Kernel != "" && standIns == 0 {
		return nil, &Error{Key: "kernel", Problem: "no rank runs as a stand-in here: name one, or give no kernel"}
	}
	cfg := config.New(ranks...)
	for _, unknown := range c.unknownKeyErrs {
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

// assignAddresses returns the address of each rank.
func (c *Cluster) assignAddresses(pool Pool) ([]netip.Addr, error) {
	if c.Format == ClusterFile {
		if pool.IsZero() {
			return nil, c.errorf("", "a cluster file has no addresses: give the addresses of its %d ranks with "+
				"--addresses, as in 127.0.0.1-127.0.0.%d",
				len(c.Nodes), min(len(c.Nodes), 254))
		}
		return pool.Take(len(c.Nodes))
	}
	if !pool.IsZero() {
		return nil, &Error{Key: "pool",
			Problem: "the resource manager's answer already has addresses: remove --addresses"}
	}
	addrs := make([]netip.Addr, len(c.Nodes))
	for i, node := range c.Nodes {
		addrs[i] = node.Addr
	}
	return addrs, nil
}

// checkOptions checks the options against the file, and sets the default of Host.
func (c *Cluster) checkOptions(options *Options) error {
	for _, list := range []struct {
		key   string
		ranks []int
	}{{"host", options.Host}, {"fpga", options.FPGA}} {
		for _, rank := range list.ranks {
			if rank < 0 || rank >= len(c.Nodes) {
				return &Error{Key: list.key,
					Problem: fmt.Sprintf("there is no rank %d: the cluster has 0 to %d", rank, len(c.Nodes)-1)}
			}
			if list.key != "host" && !c.Nodes[rank].FPGA {
				return &Error{Key: list.key, Problem: fmt.Sprintf("rank %d is a CPU rank: list it as fpga in the "+
					"file, or make it a host", rank)}
			}
		}
	}
	for _, rank := range options.Host {
		if slices.Contains(options.FPGA, rank) {
			return &Error{Key: "host", Problem: fmt.Sprintf("rank %d is to be an FPGA as well: choose one", rank)}
		}
	}
	if options.Host != nil {
		return nil
	}
	for rank, node := range c.Nodes {
		if node.CPU && !slices.Contains(options.FPGA, rank) {
			options.Host = []int{rank}
			break
		}
	}
	return nil
}
