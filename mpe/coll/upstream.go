package coll

import "slices"

// The tree that upstream's compiler makes of Bcast, Scatter, Gather and Reduce with
// com_opt ≥ 1 and two FPGAs or more. The FPGA ranks, in the order of the cluster file,
// form groups of four; the first of each is the replicator. The root exchanges with
// the replicators in their order, each replicator with its group in order. The root
// is the one rank that is not an FPGA: any other would have nobody to talk to.
//
// Scatter and Gather count blocks in the order of the cluster file, so this must be
// that of the ranks.
const groupSize = 4

// tree is a rank's place in it.
type tree struct {
	// groups are those that the root talks to; each begins with its replicator.
	groups [][]int
	// mine is the caller's group, nil for the root.
	mine []int
}

func (c *Call) tree() tree {
	var t tree
	for i := 0; i < len(c.FPGAs); i += groupSize {
		group := c.FPGAs[i:min(i+groupSize, len(c.FPGAs))]
		if slices.Contains(group, c.Rank) {
			t.mine = group
		}
		t.groups = append(t.groups, group)
	}
	return t
}

// grouped: the FPGAs must be all ranks but the root.
func grouped(c *Call) string {
	const problem = "the tree needs at least two FPGAs, which are all ranks but the root, each once"
	if len(c.FPGAs) != c.Ranks-1 || c.Ranks < 3 {
		return problem
	}
	seen := make([]bool, c.Ranks)
	for i, r := range c.FPGAs {
		if r < 0 || r >= c.Ranks || r == c.Root || seen[r] {
			return problem
		}
		seen[r] = true
		if (c.Collective == Scatter || c.Collective == Gather) && r != i+1 {
			return "the tree needs the root to be rank 0, and the FPGAs in the order of their ranks"
		}
	}
	if c.Vector {
		return uniform(c)
	}
	if c.Collective == Reduce {
		return unordered(c)
	}
	return ""
}
