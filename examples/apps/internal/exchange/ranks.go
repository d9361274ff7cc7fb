package exchange

import (
	"fmt"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// Root is the rank that Scatter sends from, and Gather and Reduce receive at.
const Root = 0

// tag is upstream's. It does not travel by profile cloudfpga.
const tag = 0

// groupSize is how many FPGAs upstream's tree puts together.
const groupSize = 4

// Ranks are the ranks of a call, as one of them knows them.
type Ranks struct {
	*mpi.Comm
	// unrolled: this rank calls Send and Recv only.
	unrolled bool
	// above is the rank that Root's data comes from then, and that ours goes to; below
	// are those whose data this rank forwards. tree: there are such ranks somewhere.
	above int
	below []int
	tree  bool
	// relayed: only Root can broadcast.
	relayed bool
	// unexpected is in the errors of messages of another length than is expected.
	unexpected error
}

// Library returns ranks of which this one makes the calls of package mpi.
func Library(c *mpi.Comm) *Ranks { return &Ranks{Comm: c} }

// Unrolled returns ranks of which this one calls Send and Recv only. fpgas are those of the
// tree in the order of upstream's cluster file; with fewer than two all is flat. In a tree
// this rank has to be one of them. unexpected is in the errors of messages of a wrong
// length.
func Unrolled(c *mpi.Comm, fpgas []int, unexpected error) (*Ranks, error) {
	r := &Ranks{Comm: c, unrolled: true, above: Root, tree: len(fpgas) > 1, unexpected: unexpected}
	if !r.tree {
		return r, nil
	}
	at := slices.Index(fpgas, c.Rank())
	if at < 0 {
		return nil, fmt.Errorf("rank %d is none of the FPGAs of upstream's tree, %v, which every rank but %d has to be", c.Rank(), fpgas, Root)
	}
	first := at - at%groupSize
	if at != first {
		r.above = fpgas[first]
	} else {
		r.below = fpgas[first+1 : min(first+groupSize, len(fpgas))]
	}
	return r, nil
}

// ByOrder reports whether messages to some rank match by their order alone. Then the
// collective calls of package mpi are messages like all others, and ranks that call Send
// and Recv can take part in them; otherwise they cannot.
func ByOrder(c *mpi.Comm) bool {
	for rank := range c.Size() {
		if info, err := c.PeerInfo(rank); err == nil && info.NoComms && rank != c.Rank() {
			return true
		}
	}
	return false
}

// Blocks returns the number of ranks whose blocks of Scatter this one receives in one
// message, and whose blocks of Gather it sends: itself, and those below.
func (r *Ranks) Blocks() int { return 1 + len(r.below) }

// others calls f for all ranks but root, in their order.
func (r *Ranks) others(root int, f func(rank int) error) error {
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
