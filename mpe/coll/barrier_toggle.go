package coll

// barrierToggle is Barrier through a master: each rank notifies rank 0 of its arrival, and then rank 0 notifies each
// rank. (In the paper, the master instead toggles a value that the ranks poll.)
//
//	T = 2(p−1)·α
var barrierToggle = &Algorithm{
	Name:   "toggle",
	Source: "MPI for FPGA soft processors: the master's rendezvous position (its figure 6)",
	build: func(call *Call, schedule *Schedule) {
		if call.Rank != 0 {
			schedule.recvToken(0, schedule.sendToken(0))
			return
		}
		for r := 1; r < call.Ranks; r++ {
			schedule.recvToken(r)
		}
		all := schedule.fence()
		for r := 1; r < call.Ranks; r++ {
			schedule.sendToken(r, all)
		}
	},
	cost: func(c *Call) Cost {
		return costOfRounds(2*(c.Ranks-1), c.Token, 0)
	},
}
