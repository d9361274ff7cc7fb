package coll

import "slices"

// groupSize is the size of a group in the tree with which upstream's compiler implements Bcast, Scatter, Gather and
// Reduce for com_opt ≥ 1 and at least two FPGAs. The FPGA ranks, in the order of the cluster file, form groups of four,
// and the first rank of each group is its replicator. The root exchanges messages with the replicators in order, and
// each replicator exchanges messages with its group in order. All ranks except the root must be FPGAs, because any
// other rank would have no peer in the tree.
//
// Scatter and Gather count blocks in the order of the cluster file, which must therefore be the order of ranks.
const groupSize = 4

// tree describes the tree as one rank sees it.
type tree struct {
	// groups lists the ranks of each group, beginning with its replicator.
	groups [][]int
	// mine is the caller's group, or nil for the root.
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

// requireTree requires that the FPGAs are exactly the ranks other than the root.
func requireTree(call *Call) string {
	const problem = "the tree needs at least two FPGAs, which are all ranks but the root, each once"
	if len(call.FPGAs) != call.Ranks-1 || call.Ranks < 3 {
		return problem
	}
	seen := make([]bool, call.Ranks)
	for i, r := range call.FPGAs {
		if r < 0 || r >= call.Ranks || r == call.Root || seen[r] {
			return problem
		}
		seen[r] = true
		if (call.Collective == Scatter || call.Collective == Gather) && r != i+1 {
			return "the tree needs the root to be rank 0, and the FPGAs in the order of their ranks"
		}
	}
	if call.Vector {
		return requireUniform(call)
	}
	if call.Collective == Reduce {
		return requireCommutative(call)
	}
	return ""
}
