package coll

// bcastTree and scatterTree are Bcast and Scatter in the tree of upstream.go. With G groups, of which the last may be
// smaller:
//
//	T ≈ (G + 3)·(α + nβ) for Bcast
//	T ≈ (G + 3)·α + (p + 2)·nβ for Scatter, n bytes a block
//
// A test contains the exact formulas.
var bcastTree = &Algorithm{
	Name:        "tree",
	Source:      "upstream's compiler, com_opt 1",
	unsupported: requireTree,
	build: func(call *Call, schedule *Schedule) {
		t, data, n := call.tree(), Loc{Buf: RecvBuf}, call.Bytes
		switch {
		case t.mine == nil:
			for _, g := range t.groups {
				schedule.send(g[0], data, n)
			}
		case t.mine[0] == call.Rank:
			got := schedule.recv(call.Root, data, n)
			for _, r := range t.mine[1:] {
				schedule.send(r, data, n, got)
			}
		default:
			schedule.recv(t.mine[0], data, n)
		}
	},
}

var scatterTree = &Algorithm{
	Name:        "tree",
	Source:      "upstream's compiler, com_opt 1",
	unsupported: requireTree,
	build: func(call *Call, schedule *Schedule) {
		t, n := call.tree(), call.Bytes
		switch {
		case t.mine == nil:
			if !call.InPlace {
				schedule.copy(Loc{Buf: RecvBuf}, Loc{Buf: SendBuf}, n)
			}
			at := n
			for _, g := range t.groups {
				schedule.send(g[0], Loc{SendBuf, at}, len(g)*n)
				at += len(g) * n
			}
		case t.mine[0] == call.Rank:
			tmp := schedule.reserve(len(t.mine) * n)
			got := schedule.recv(call.Root, tmp, len(t.mine)*n)
			schedule.copy(Loc{Buf: RecvBuf}, tmp, n, got)
			for i, r := range t.mine[1:] {
				schedule.send(r, tmp.offset((i+1)*n), n, got)
			}
		default:
			schedule.recv(t.mine[0], Loc{Buf: RecvBuf}, n)
		}
	},
}
