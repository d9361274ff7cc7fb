package coll

// MaxGathered is the maximum total size in bytes of the blocks of an Alltoall through rank 0. Beyond it, transferring
// the messages of rank 0 takes as long as transferring all messages directly.
const MaxGathered = 1 << 20

// alltoallGatherScatter is Alltoall through rank 0, which gathers the blocks of all ranks, sorts them by destination,
// and scatters them. It needs the fewest possible messages: 2(p−1), and only two per rank other than 0. It pays off if
// many ranks share few cores, and only for short blocks, because each block is sent twice. Rank 0 needs 2p²n bytes of
// scratch.
//
//	T = 2(p−1)·(α + pnβ), n bytes a block
var alltoallGatherScatter = &Algorithm{
	Name:   "gather-scatter",
	Source: "MPI: A Message-Passing Interface Standard, 6.8: the blocks of a gather of all, by a scatter",
	unsupported: func(c *Call) string {
		if !c.Vector && c.Bytes > MaxGathered/c.Ranks/c.Ranks {
			return "the blocks of all ranks must have 1 MiB at most together"
		}
		return requireUniform(c)
	},
	build: func(c *Call, schedule *Schedule) {
		p, n := c.Ranks, c.Bytes
		own, row := c.inputLoc(), p*n
		if c.Rank != 0 {
			sent := schedule.send(0, own, row)
			if !c.InPlace {
				sent = 0
			}
			schedule.recv(0, Loc{Buf: RecvBuf}, row, sent)
			return
		}
		in, out := schedule.reserve(p*row), schedule.reserve(p*row)
		for r := 1; r < p; r++ {
			schedule.recv(r, in.offset(r*row), row)
		}
		schedule.copy(in, own, row)
		all := schedule.fence()
		for r := 1; r < p; r++ {
			schedule.send(r, out.offset(r*row), row, schedule.pack(out.offset(r*row), in.offset(r*n), n, p, row, all))
		}
		schedule.pack(Loc{Buf: RecvBuf}, in, n, p, row, all)
	},
	cost: func(c *Call) Cost {
		return costOfRounds(2*(c.Ranks-1), c.Ranks*c.Bytes, 0)
	},
}
