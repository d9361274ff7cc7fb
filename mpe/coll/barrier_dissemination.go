package coll

// barrierDissemination is Barrier by dissemination: in round k, each rank notifies the rank at distance 2^k after it
// that it has entered the barrier itself, and so have all ranks that it was notified of. After ⌈log₂ p⌉ rounds, each
// rank knows that all ranks have entered.
//
//	T = ⌈log₂ p⌉·α, with p messages in each round
var barrierDissemination = &Algorithm{
	Name: "dissemination",
	Source: "Hensgen, Finkel, Manber, Two Algorithms for Barrier Synchronization, Int. J. Parallel Programming " +
		"17 (1988)",
	build: func(call *Call, schedule *Schedule) {
		schedule.Window = 3
		known := 0
		for d := 1; d < call.Ranks; d *= 2 {
			schedule.sendToken((call.Rank+d)%call.Ranks, known)
			// The receives have no dependencies, so they are posted early.
			known = schedule.join(known, schedule.recvToken((call.Rank-d+call.Ranks)%call.Ranks))
		}
	},
	cost: func(c *Call) Cost {
		return costOfRounds(log2(c.Ranks), c.Token, 0)
	},
}
