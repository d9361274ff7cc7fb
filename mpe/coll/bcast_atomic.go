package coll

// bcastAtomic: ranks synchronise once and then the data flows through the chain
// without a handshake for each segment: the head sends, the body forwards, the tail
// receives. Every rank asks its successor at once; the tail's answer goes up the
// chain, each rank adding its own, so that the head knows that all are ready and have
// their receives posted before a byte moves: all of them get the data, or none is
// sent anything.
//
//	T = (2p − 1)·α + (n + (p−2)·b)·β, of which p·α are the synchronisation
//
// with b bytes of a piece. The order of a rank's steps is that of the source's figure
// 7; as the last of them waits for nothing, its receive is posted before the answer.
var bcastAtomic = &Algorithm{
	Collective: Bcast,
	Name:       "atomic",
	Source:     "Park, Efficient Pipelined Broadcast with Monitoring Processing Node Status (2019), 3.1",
	Segmented:  true,
	fits:       chained,
	build: func(c *Call, s *Schedule) {
		s.Window = 5
		before, after := c.chain()
		_, piece := c.segments(c.Bytes)
		step := Step{Peer: before, To: after, Into: Loc{Buf: RecvBuf}, Len: c.Bytes, Piece: piece}
		if c.Bytes == 0 {
			return
		}
		asked, ready := 0, 0
		if after >= 0 {
			s.sendToken(after)
		}
		if before >= 0 {
			asked = s.recvToken(before)
		}
		if after >= 0 {
			ready = s.recvToken(after)
		}
		switch {
		case before < 0:
			step.Kind, step.Peer, step.From, step.Into = StepSend, after, step.Into, Loc{}
			s.add(step, []int{ready})
			return
		case after < 0:
			step.Kind = StepRecv
		default:
			step.Kind = StepForward
		}
		s.sendToken(before, asked, ready)
		s.add(step, nil) // begins at once, as it waits for nothing
	},
	cost: func(c *Call) Cost {
		p, n, t := c.Ranks, c.Bytes, c.Token
		if n == 0 {
			return Cost{}
		}
		_, b := c.segments(n)
		return Cost{Rounds: 2*p - 1, Bytes: p*t + n + (p-2)*b, Messages: 3 * (p - 1), Volume: (p - 1) * (n + 2*t)}
	},
}
