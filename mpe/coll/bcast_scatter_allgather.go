package coll

// bcastScatterAllgather is Bcast that scatters the data down a binomial tree, and then passes the pieces around a ring.
// The ring skips the pieces that a rank has already received for its subtree, so each byte reaches each rank only once.
//
//	T ≤ (⌈log₂ p⌉ + p − 1)·α + 2·(p−1)/p·nβ
//
// with equality if the last rank of the tree needs the most rounds in the ring.
var bcastScatterAllgather = &Algorithm{
	Name: "scatter-allgather",
	Source: "van de Geijn's: Barnett, Gupta, Payne, Shuler, van de Geijn, Watts, Interprocessor Collective " +
		"Communication " +
		"Library (1994); without redundant transfers: Zhou et al., A Bandwidth-Saving Optimization for MPI " +
		"Broadcast (2015)",
	build: func(call *Call, schedule *Schedule) {
		p, v := call.Ranks, call.virtualRank()
		at := func(i int) int { return call.partOffset(call.Bytes, p, i) }
		data := Loc{Buf: RecvBuf}
		size := subtree(v, p)
		got := 0
		if v != 0 {
			got = schedule.recv(call.actualRank(parent(v)), data.offset(at(v)), at(v+size)-at(v))
		}
		for d := firstChild(v, p); d > 0; d /= 2 {
			w := v + d
			end := w + subtree(w, p)
			schedule.send(call.actualRank(w), data.offset(at(w)), at(end)-at(w), got)
		}
		schedule.Window = 4
		// In round i, rank v receives piece v−1−i, unless the piece belongs to its own subtree: those pieces would come
		// last, and the rank already holds them.
		next := (v + 1) % p
		mine, theirs := p-size, p-subtree(next, p)
		last := got
		schedule.rounds(max(mine, theirs), func(i int) {
			if i < theirs {
				piece := (v - i + p) % p
				schedule.send(call.actualRank(next), data.offset(at(piece)), at(piece+1)-at(piece), last)
			}
			if i < mine {
				piece := (v - 1 - i + p) % p
				last = schedule.recv(call.actualRank((v-1+p)%p), data.offset(at(piece)), at(piece+1)-at(piece))
			} else {
				last = got
			}
		})
	},
	cost: func(c *Call) Cost {
		return Cost{Rounds: log2(c.Ranks) + c.Ranks - 1, Bytes: 2 * allButOne(c.Bytes, c.Ranks)}
	},
}
