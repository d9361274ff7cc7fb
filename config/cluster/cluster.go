package cluster

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
)

// Cluster is the parsed form of a cluster description.
type Cluster struct {
	// File is the name passed to Parse.
	File string
	// Format is the format of the file.
	Format Format
	// Nodes lists the ranks in rank order: Nodes[i].Rank is i.
	Nodes []Node
	// FPGAs lists the FPGA ranks in file order, in which upstream's collectives group them.
	FPGAs []int
	// ComOpt is the level at which upstream optimises communication. From level 1 on, collectives use trees. The
	// default is 1 in a cluster file, as in upstream's compiler, and 0 in the resource manager's answer.
	ComOpt int

	// source maps keys to lines of the file. unknownKeyErrs contains an error for each unused key of a cluster file.
	source         strictyaml.Source
	unknownKeyErrs []error
}

// Format is the format of the file that describes a cluster.
type Format uint8

// Formats of cluster descriptions.
const (
	// ClusterFile is the compiler's file, without addresses.
	ClusterFile Format = iota
	// ManagerAnswer is the resource manager's answer, with addresses.
	ManagerAnswer
)

// Node is one rank of a cluster.
type Node struct {
	Rank int
	// CPU and FPGA are set if the rank can be of that kind. Upstream's pingpong example lists each rank as both,
	// because it builds one program for both.
	CPU, FPGA bool
	// Addr is the node's IP address. It is valid only in a ManagerAnswer.
	Addr netip.Addr
}

// Error describes a single problem of a file or of the options for reading it. Key is a place in the file, such as
// "nodes[2].node_ip". For an option, Key is its name and File is empty.
type Error = config.Error

func (c *Cluster) errorf(key, format string, args ...any) error {
	return &Error{File: c.File, Line: c.source.Line(key), Key: key, Problem: fmt.Sprintf(format, args...)}
}

// sortNodes sorts the nodes, and checks that their ranks are 0 … n-1.
func (c *Cluster) sortNodes() error {
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
