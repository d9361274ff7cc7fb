package coll

// bcastAtomic: ranks synchronise once and then the data flows through the chain
// without a handshake for each segment: the head sends, the body forwards, the tail
// receives. The synchronisation is the flow's own (Step.Piece): every rank announces
// the data to its successor at once, and the tail's leave to send goes up the chain,
// each rank adding its own, so that the head knows that all are ready and have their
// receives posted before a byte moves: all of them get the data, or none is sent
// anything.
//
//	T = (2p − 1)·α + (n + (p−2)·b)·β, of which p·α are the synchronisation
//
// with b bytes of a piece. For data of no more than promised bytes all ranks have
// promised room in advance, so that no leave is needed: it goes down the chain segment
// by segment. TransmissionOrder gives the Order that changes with what ranks still have
// to send.
var bcastAtomic = &Algorithm{
	Name:      "atomic",
	Source:    "Park, Efficient Pipelined Broadcast with Monitoring Processing Node Status (2019), 3.1",
	Segmented: true,
	fits: func(c *Call) string {
		if !c.Flows {
			return "it needs ranks that can forward a message while it arrives"
		}
		return chained(c)
	},
	build: func(c *Call, s *Schedule) {
		if c.eager() {
			bcastChain.build(c, s)
			return
		}
		before, after := c.chain()
		_, piece := c.segments(c.Bytes)
		step := Step{Kind: StepForward, Peer: before, To: after, Into: Loc{Buf: RecvBuf}, Len: c.Bytes, Piece: piece}
		switch {
		case before < 0:
			step.Kind, step.Peer, step.To, step.From, step.Into = StepSend, after, 0, step.Into, Loc{}
		case after < 0:
			step.Kind, step.To = StepRecv, 0
		}
		s.add(step, nil)
	},
	cost: func(c *Call) Cost {
		p, n := c.Ranks, c.Bytes
		if c.eager() {
			return bcastChain.cost(c)
		}
		_, b := c.segments(n)
		return Cost{Rounds: 2*p - 1, Bytes: n + (p-2)*b}
	},
}

// promised is how many bytes every rank has room for before a receive is posted: the
// least eager credit of the extended profile, by default (E20). In shared memory it is
// less (E48), but there, too, leave for fewer bytes would cost more than it is worth.
const promised = 64 << 10

// eager reports whether all ranks have promised room for the data of the call.
func (c *Call) eager() bool { return !c.NoCredit && c.Bytes <= promised }
