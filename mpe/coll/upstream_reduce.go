package coll

// reduceTree and gatherTree use the tree of upstream.go. With G groups, of which the last may be smaller:
//
//	T = (G + min(3, p−2))·(α + nβ + nγ) for Reduce
//	T ≈ (G + 3)·α + (p + 2)·nβ for Gather, n bytes a block
//
// A test has the exact formulas. A replicator and the root begin with their own contributions and combine in the
// order of reception.
var reduceTree = &Algorithm{
	Name:        "tree",
	Source:      "upstream's compiler, com_opt 1",
	unsupported: requireTree,
	build: func(c *Call, s *Schedule) {
		t, n := c.tree(), c.Bytes
		acc, own := Loc{Buf: RecvBuf}, c.inputLoc()
		var from []int
		switch {
		case t.mine == nil:
			for _, g := range t.groups {
				from = append(from, g[0])
			}
		case t.mine[0] == c.Rank:
			acc, own, from = s.reserve(n), Loc{Buf: SendBuf}, t.mine[1:]
		default:
			s.send(t.mine[0], Loc{Buf: SendBuf}, n)
			return
		}
		ready, free := 0, 0
		if acc != own {
			ready = s.copy(acc, own, n)
		}
		tmp := s.reserve(n)
		for _, r := range from {
			ready = s.combine(false, acc, tmp, n, ready, s.recv(r, tmp, n, free))
			free = ready
		}
		if t.mine != nil {
			s.send(c.Root, acc, n, ready)
		}
	},
}

var gatherTree = &Algorithm{
	Name:        "tree",
	Source:      "upstream's compiler, com_opt 1",
	unsupported: requireTree,
	build: func(c *Call, s *Schedule) {
		t, n := c.tree(), c.Bytes
		switch {
		case t.mine == nil:
			if !c.InPlace {
				s.copy(Loc{Buf: RecvBuf}, Loc{Buf: SendBuf}, n)
			}
			at := n
			for _, g := range t.groups {
				s.recv(g[0], Loc{RecvBuf, at}, len(g)*n)
				at += len(g) * n
			}
		case t.mine[0] == c.Rank:
			tmp := s.reserve(len(t.mine) * n)
			for i, r := range t.mine[1:] {
				s.recv(r, tmp.offset((i+1)*n), n)
			}
			s.copy(tmp, Loc{Buf: SendBuf}, n)
			s.send(c.Root, tmp, len(t.mine)*n, AllEarlier)
		default:
			s.send(t.mine[0], Loc{Buf: SendBuf}, n)
		}
	},
}
