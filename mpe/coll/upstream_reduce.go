package coll

// reduceTree and gatherTree are Reduce and Gather in the tree of upstream.go. With G groups, of which the last may be
// smaller:
//
//	T = (G + min(3, p−2))·(α + nβ + nγ) for Reduce
//	T ≈ (G + 3)·α + (p + 2)·nβ for Gather, n bytes a block
//
// A test contains the exact formulas. Replicators and the root begin with their own contributions, and combine the
// others in the order of reception.
var reduceTree = &Algorithm{
	Name:        "tree",
	Source:      "upstream's compiler, com_opt 1",
	unsupported: requireTree,
	build: func(call *Call, schedule *Schedule) {
		t, n := call.tree(), call.Bytes
		acc, own := Loc{Buf: RecvBuf}, call.inputLoc()
		var from []int
		switch {
		case t.mine == nil:
			for _, g := range t.groups {
				from = append(from, g[0])
			}
		case t.mine[0] == call.Rank:
			acc, own, from = schedule.reserve(n), Loc{Buf: SendBuf}, t.mine[1:]
		default:
			schedule.send(t.mine[0], Loc{Buf: SendBuf}, n)
			return
		}
		ready, free := 0, 0
		if acc != own {
			ready = schedule.copy(acc, own, n)
		}
		tmp := schedule.reserve(n)
		for _, r := range from {
			ready = schedule.combine(false, acc, tmp, n, ready, schedule.recv(r, tmp, n, free))
			free = ready
		}
		if t.mine != nil {
			schedule.send(call.Root, acc, n, ready)
		}
	},
}

var gatherTree = &Algorithm{
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
				schedule.recv(g[0], Loc{RecvBuf, at}, len(g)*n)
				at += len(g) * n
			}
		case t.mine[0] == call.Rank:
			tmp := schedule.reserve(len(t.mine) * n)
			for i, r := range t.mine[1:] {
				schedule.recv(r, tmp.offset((i+1)*n), n)
			}
			schedule.copy(tmp, Loc{Buf: SendBuf}, n)
			schedule.send(call.Root, tmp, len(t.mine)*n, AllEarlier)
		default:
			schedule.send(t.mine[0], Loc{Buf: SendBuf}, n)
		}
	},
}
