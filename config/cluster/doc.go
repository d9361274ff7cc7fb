// Package cluster imports the two files with which upstream describes a cluster: the cluster file that upstream's
// compiler reads, and the resource manager's answer about a cluster that it has allocated.
//
//	{"nodes": {"cpu": [0], "fpga": [1, 2, 3]}, "config": {"com_opt": 0, "mem_opt": 0}}
//
//	{"cluster_id": 7, "nodes": [{"node_id": 0, "node_ip": "10.12.0.1", "image_id": "NON_FPGA"}, …]}
//
// The package converts both to the rank entries of a config.Config. It ignores unknown keys, because upstream defines
// the files and may add keys; unknown keys of a cluster file become warnings of the configuration.
//
// The package must never ask the resource manager itself, and never guess an address: a cluster file has no addresses,
// so the caller supplies a Pool.
package cluster
