package exchange

import (
	"fmt"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// Root is the rank from which Scatter sends, and to which Gather and Sum send.
const Root = 0

// tag is the tag that upstream's programs use. The cloudfpga profile does not transmit it.
const tag = 0

// groupSize is the number of FPGAs in a group of upstream's tree.
const groupSize = 4

// Ranks describes the ranks that take part in a call, as seen by one of them.
type Ranks struct {
	*mpi.Comm
	// unrolled is set if this rank uses only Send and Recv.
	unrolled bool
	// parent is the rank through which this rank exchanges data with Root. children lists the ranks whose data this
	// rank forwards. hasTree is set if any rank forwards data.
	parent   int
	children []int
	hasTree  bool
	// rootOnly is set if only Root can broadcast.
	rootOnly bool
	// unexpected is the error wrapped by the error for a message of unexpected length.
	unexpected error
}

// NewLibrary returns a Ranks for a rank that uses the collective calls of package mpi.
func NewLibrary(c *mpi.Comm) *Ranks { return &Ranks{Comm: c} }

// NewUnrolled returns a Ranks for a rank that uses only Send and Recv. fpgas lists the FPGAs of the tree in the
// order of upstream's cluster file; with fewer than two, there is no tree. In a tree, this rank must be one of
// them. The error for a message of unexpected length wraps unexpected.
func NewUnrolled(comm *mpi.Comm, fpgas []int, unexpected error) (*Ranks, error) {
	ranks := &Ranks{Comm: comm, unrolled: true, parent: Root, hasTree: len(fpgas) > 1, unexpected: unexpected}
	if !ranks.hasTree {
		return ranks, nil
	}
	at := slices.Index(fpgas, comm.Rank())
	if at < 0 {
		return nil, fmt.Errorf("rank %d is not among the FPGAs of upstream's tree, %v; every rank except %d must be",
			comm.Rank(), fpgas, Root)
	}
	first := at - at%groupSize
	if at != first {
		ranks.parent = fpgas[first]
	} else {
		ranks.children = fpgas[first+1 : min(first+groupSize, len(fpgas))]
	}
	return ranks, nil
}

// MatchesByOrder reports whether messages to some rank match by their order alone. If so, the collective calls of
// package mpi are ordinary messages, in which ranks that use Send and Recv can take part; otherwise they cannot.
func MatchesByOrder(c *mpi.Comm) bool {
	for rank := range c.Size() {
		if info, err := c.PeerInfo(rank); err == nil && info.NoComms && rank != c.Rank() {
			return true
		}
	}
	return false
}

// Blocks returns the number of blocks that this rank receives in one message of Scatter, and sends in one message of
// Gather: its own block, and the blocks of its children.
func (r *Ranks) Blocks() int { return 1 + len(r.children) }

// forEachOther calls f for all ranks except root, in rank order.
func (r *Ranks) forEachOther(root int, f func(rank int) error) error {
	for rank := range r.Size() {
		if rank == root {
			continue
		}
		if err := f(rank); err != nil {
			return err
		}
	}
	return nil
}
