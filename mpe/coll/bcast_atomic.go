package coll

// bcastAtomic is Bcast as a flow: ranks synchronize once, and then the data flows through the chain without a handshake
// for each segment. The head sends, the body forwards, the tail receives. The flow synchronizes itself (Step.Piece):
// each rank announces the data to its successor immediately, and clears its predecessor to send when its successor has
// cleared it. The head therefore sends the first byte only when all ranks are ready, with their receives posted. Either
// all ranks get the data, or nothing is sent.
//
//	T = (2p − 1)·α + (n + (p−2)·b)·β, of which p·α are the synchronisation
//
// with pieces of b bytes. Data of at most eagerCredit bytes needs no clearance, because all ranks have granted credit
// in advance; it is sent down the chain segment by segment. TransmissionOrder returns an Order that depends on the
// amount of data that ranks still have to send.
var bcastAtomic = &Algorithm{
	Name:      "atomic",
	Source:    "Park, Efficient Pipelined Broadcast with Monitoring Processing Node Status (2019), 3.1",
	Segmented: true,
	unsupported: func(c *Call) string {
		if !c.Flows {
			return "it needs ranks that can forward a message while it arrives"
		}
		return requireChain(c)
	},
	build: func(call *Call, schedule *Schedule) {
		if call.eager() {
			bcastChain.build(call, schedule)
			return
		}
		before, after := call.chainNeighbors()
		_, piece := call.segments(call.Bytes)
		step := Step{Kind: StepForward, Peer: before, To: after, Into: Loc{Buf: RecvBuf}, Len: call.Bytes, Piece: piece}
		switch {
		case before < 0:
			step.Kind, step.Peer, step.To, step.From, step.Into = StepSend, after, 0, step.Into, Loc{}
		case after < 0:
			step.Kind, step.To = StepRecv, 0
		}
		schedule.add(step, nil)
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

// eagerCredit is the credit in bytes that every rank grants before a receive is posted: the default minimum of the
// extended profile's eager credit (E20). In shared memory, the credit is smaller (E48), but even there, synchronizing
// for fewer bytes would cost more than it gains.
const eagerCredit = 64 << 10

// eager reports whether all ranks have granted credit for the data of the call.
func (c *Call) eager() bool { return !c.NoCredit && c.Bytes <= eagerCredit }
