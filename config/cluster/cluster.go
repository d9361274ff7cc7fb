package cluster

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
)

// Cluster is what a file says.
type Cluster struct {
	// File is the name given to Parse.
	File string
	// Format says which of the two files it is.
	Format Format
	// Nodes are the ranks, sorted: Nodes[i].Rank is i.
	Nodes []Node
	// FPGAs are the FPGA ranks in the order of the file, which is the one in
	// which upstream's collectives group them.
	FPGAs []int
	// ComOpt is upstream's optimisation level of communication. Where the file does
	// not say, it is 1 in a cluster file, as for upstream's compiler, and 0 in the
	// resource manager's answer. From 1 on collectives are trees.
	ComOpt int

	// source has the lines of the file, and unknown an error for each key of a cluster file that is not used.
	source  strictyaml.Source
	unknown []error
}

// Format is the kind of file that a cluster comes from.
type Format uint8

// The two files.
const (
	// ClusterFile is the compiler's, without addresses.
	ClusterFile Format = iota
	// ManagerAnswer is the resource manager's, with addresses.
	ManagerAnswer
)

// Node is one rank of a cluster.
type Node struct {
	Rank int
	// CPU and FPGA say what the rank can be. Upstream's pingpong example
	// lists each rank as both, because one program is built for both.
	CPU, FPGA bool
	// Addr is the node's IP address. It is valid in a ManagerAnswer only.
	Addr netip.Addr
}

// Error is one thing that is wrong with a file or with the choices made for it.
// Key is the place in the file, as in "nodes[2].node_ip", or the name of an
// option, which has no File.
type Error = config.Error

func (c *Cluster) errorf(key, format string, args ...any) error {
	return &Error{File: c.File, Line: c.source.Line(key), Key: key, Problem: fmt.Sprintf(format, args...)}
}

// number sorts the nodes, and checks that their ranks are 0 … n-1.
func (c *Cluster) number() error {
	if len(c.Nodes) == 0 {
		return c.errorf("nodes", "the list is empty: a cluster has at least rank 0")
	}
	slices.SortFunc(c.Nodes, func(a, b Node) int { return a.Rank - b.Rank })
	for i, node := range c.Nodes {
		if node.Rank == i {
			continue
		}
		if i > 0 && node.Rank == c.Nodes[i-1].Rank {
			return c.errorf("nodes", "rank %d is listed twice: remove one of them", node.Rank)
		}
		return c.errorf("nodes", "rank %d is missing: %d nodes have the ranks 0 to %d", i, len(c.Nodes), len(c.Nodes)-1)
	}
	return nil
}
