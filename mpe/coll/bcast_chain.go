package coll

// bcastChain is Bcast along a chain of ranks, in segments: a rank forwards one segment while it receives the next. Each
// segment is a separate message, with its own handshake.
//
//	T = (p − 2 + k)·α + (n + (p−2)·n/k)·β
//
// PipelineSegments returns the best k.
var bcastChain = &Algorithm{
	Name:        "chain",
	Source:      "Barnett, Payne, van de Geijn, Watts, Broadcasting on Meshes with Wormhole Routing (1996)",
	Segmented:   true,
	unsupported: requireChain,
	build: func(c *Call, schedule *Schedule) {
		schedule.Window = 2
		before, after := c.chainNeighbors()
		k, b := c.segments(c.Bytes)
		schedule.rounds(k, func(i int) {
			at, n := Loc{RecvBuf, i * b}, min(b, c.Bytes-i*b)
			got := 0
			if before >= 0 {
				got = schedule.recv(before, at, n)
			}
			if after >= 0 {
				schedule.send(after, at, n, got)
			}
		})
	},
	cost: func(c *Call) Cost {
		k, b := c.segments(c.Bytes)
		if k == 0 {
			return Cost{}
		}
		return Cost{Rounds: c.Ranks - 2 + k, Bytes: c.Bytes + (c.Ranks-2)*min(b, c.Bytes)}
	},
}
