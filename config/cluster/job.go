package cluster

import (
	"cmp"
	"slices"

	"github.com/zrlmpi/zrlmpid/config"
)

// JobOptions are what a file leaves open for a job.
type JobOptions struct {
	// Addresses are as in Options. Without them, the ranks of a job that runs on this host alone, which is one
	// without FPGAs or with stand-ins in their places, are at 127.0.0.1, 127.0.0.2 and so on, in rank order.
	Addresses Pool
	// FPGA is as in Options.
	FPGA []int
	// Kernel is what stand-ins run in place of the FPGAs; empty: there are none.
	Kernel string
}

// loopback are the addresses of jobs on one host.
const loopback = "127.0.0.1-127.0.255.254"

// Job returns the cluster as a checked configuration of a job, in which all CPU ranks are processes
// that the job starts. Errors are those of Config.
func (c *Cluster) Job(o JobOptions) (*config.Config, error) {
	job, all := *c, Options{Addresses: o.Addresses, FPGA: o.FPGA, Kernel: o.Kernel, StandIns: o.Kernel != "", Host: []int{}}
	fpgas := false
	for rank, node := range c.Nodes {
		if node.CPU && !slices.Contains(o.FPGA, rank) {
			all.Host = append(all.Host, rank)
		} else {
			fpgas = true
		}
	}
	if len(all.Host) == 0 {
		return nil, c.errorf("nodes", "all %d ranks are FPGAs: a job needs at least one CPU rank", len(c.Nodes))
	}
	if o.Kernel != "" || !fpgas && c.Format == ClusterFile {
		var err error
		job.Format = ClusterFile // the addresses of FPGAs are not those of their stand-ins
		if all.Addresses, err = ParsePool(cmp.Or(o.Addresses.text, loopback)); err != nil {
			return nil, err
		}
	}
	return job.Config(all)
}
