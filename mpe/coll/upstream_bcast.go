package coll

// bcastTree and scatterTree use the tree of upstream.go. With G groups, of which the last may be smaller:
//
//	T ≈ (G + 3)·(α + nβ) for Bcast
//	T ≈ (G + 3)·α + (p + 2)·nβ for Scatter, n bytes a block
//
// A test has the exact formulas.
var bcastTree = &Algorithm{
	Name:        "tree",
	Source:      "upstream's compiler, com_opt 1",
	unsupported: requireTree,
	build: func(c *Call, s *Schedule) {
		t, data, n := c.tree(), Loc{Buf: RecvBuf}, c.Bytes
		switch {
		case t.mine == nil:
			for _, g := range t.groups {
				s.send(g[0], data, n)
			}
		case t.mine[0] == c.Rank:
			got := s.recv(c.Root, data, n)
			for _, r := range t.mine[1:] {
				s.send(r, data, n, got)
			}
		default:
			s.recv(t.mine[0], data, n)
		}
	},
}

var scatterTree = &Algorithm{
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
				s.send(g[0], Loc{SendBuf, at}, len(g)*n)
				at += len(g) * n
			}
		case t.mine[0] == c.Rank:
			tmp := s.reserve(len(t.mine) * n)
			got := s.recv(c.Root, tmp, len(t.mine)*n)
			s.copy(Loc{Buf: RecvBuf}, tmp, n, got)
			for i, r := range t.mine[1:] {
				s.send(r, tmp.offset((i+1)*n), n, got)
			}
		default:
			s.recv(t.mine[0], Loc{Buf: RecvBuf}, n)
		}
	},
}
