package coll

// init sets the formulas of the trees. No choice uses them: FPGAs that are built with the tree support no other
// algorithm.
func init() {
	bcastTree.cost = func(c *Call) Cost { return costOfRounds(c.tree().down(1, 1, false), c.Bytes, 0) }
	reduceTree.cost = func(c *Call) Cost { return costOfRounds(c.tree().up(1, 1, false), c.Bytes, c.Bytes) }
	scatterTree.cost = func(c *Call) Cost {
		t := c.tree()
		return Cost{Rounds: t.down(1, 1, false), Bytes: t.down(c.Bytes, c.Bytes, true)}
	}
	gatherTree.cost = func(c *Call) Cost {
		t := c.tree()
		return Cost{Rounds: t.up(1, 1, false), Bytes: t.up(c.Bytes, c.Bytes, true)}
	}
}

// down returns the longest path if the root sends to each replicator in turn, and each replicator to its group. up
// returns the longest path in the other direction, in which the root receives in the same order. A message between
// the root and a replicator costs root or, if whole is set, root for each member of the group. A message within a
// group costs member.
func (t tree) down(root, member int, whole bool) (longest int) {
	at := 0
	for _, g := range t.groups {
		at += weight(g, root, whole)
		longest = max(longest, at+(len(g)-1)*member)
	}
	return longest
}

func (t tree) up(root, member int, whole bool) (at int) {
	for _, g := range t.groups {
		at = max(at, (len(g)-1)*member) + weight(g, root, whole)
	}
	return at
}

func weight(group []int, root int, whole bool) int {
	if whole {
		return root * len(group)
	}
	return root
}
