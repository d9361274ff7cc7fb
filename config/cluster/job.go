package cluster

import (
	"cmp"
	"slices"

	"github.com/zrlmpi/zrlmpid/config"
)

// JobOptions holds the choices for a job that the file of a cluster does not determine.
type JobOptions struct {
	// Addresses has the same meaning as in Options. By default, the ranks get the addresses 127.0.0.1, 127.0.0.2 and so
	// on, in rank order, if the job runs only on this host, without FPGAs or with stand-ins for them.
	Addresses Pool
	// FPGA is as in Options.
	FPGA []int
	// Kernel is the kernel of the stand-ins that replace the FPGAs. If it is empty, FPGAs are not replaced.
	Kernel string
}

// loopbackPool is the default address pool of jobs on one host.
const loopbackPool = "127.0.0.1-127.0.255.254"

// JobConfig returns the cluster as a validated configuration of a job that starts a process for each CPU rank. It
// returns the same errors as Config.
func (c *Cluster) JobConfig(options JobOptions) (*config.Config, error) {
	job, all := *c, Options{Addresses: options.Addresses, FPGA: options.FPGA, Kernel: options.Kernel,
		StandIns: options.Kernel != "",
		Host:     []int{}}
	fpgas := false
	for rank, node := range c.Nodes {
		if node.CPU && !slices.Contains(options.FPGA, rank) {
			all.Host = append(all.Host, rank)
		} else {
			fpgas = true
		}
	}
	if len(all.Host) == 0 {
		return nil, c.errorf("nodes", "all %d ranks are FPGAs: a job needs at least one CPU rank", len(c.Nodes))
	}
	if options.Kernel != "" || !fpgas && c.Format == ClusterFile {
		var err error
		job.Format = ClusterFile // stand-ins do not have the addresses of their FPGAs
		if all.Addresses, err = ParsePool(cmp.Or(options.Addresses.text, loopbackPool)); err != nil {
			return nil, err
		}
	}
	return job.Config(all)
}
