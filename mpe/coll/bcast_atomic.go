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
// with b bytes of a piece. Messages for which the executor's peers have promised room
// in advance need no leave, and p·α less.
//
// If the order of the chain may change (Call.Form), the root decides by the status
// that ranks have reported, 2 bits each. This register goes down a binomial tree first,
// ⌈log₂ p⌉·α more; in front of data of no more than inlineOrder bytes it goes along,
// as nobody has to know his predecessor to receive.
var bcastAtomic = &Algorithm{
	Collective: Bcast,
	Name:       "atomic",
	Source:     "Park, Efficient Pipelined Broadcast with Monitoring Processing Node Status (2019), 3.1 and 3.2",
	Segmented:  true,
	fits: func(c *Call) string {
		switch {
		case !c.Flows:
			return "it needs ranks that can forward a message while it arrives"
		case c.Form != OrderFixed && c.Order != nil:
			return "the order is given, so it cannot change by status"
		}
		return chained(c)
	},
	build: func(c *Call, s *Schedule) {
		switch {
		case c.Bytes == 0:
		case c.Form == OrderFixed:
			c.flow(s)
		case c.Bytes <= inlineOrder:
			c.passOrder(s)
		default:
			c.spreadOrder(s)
		}
	},
	cost: func(c *Call) Cost {
		p, n := c.Ranks, c.Bytes
		if n == 0 {
			return Cost{}
		}
		_, b := c.segments(n)
		cost := Cost{Rounds: 2*p - 1, Bytes: n + (p-2)*b, Messages: p - 1, Volume: (p - 1) * n}
		r := registerLen(p)
		switch {
		case c.Form == OrderFixed:
		case n <= inlineOrder:
			cost = times(p-1, n+r, 0).all(p-1, n+r)
		default:
			cost.Rounds += log2(p)
			cost.Bytes += log2(p) * r
			cost.Messages *= 2
			cost.Volume += (p - 1) * r
			cost.Bound = true // the tail need not be the one that learns the order last
		}
		return cost
	},
}

// inlineOrder is up to how many bytes of data travel behind the register: they are
// copied once, which takes less than a message more.
const inlineOrder = 4 << 10

// registerLen is how long the status of p ranks is, in whole words.
func registerLen(p int) int { return (p + 15) / 16 * 4 }

// flow adds the caller's part of the flow along c.Order.
func (c *Call) flow(s *Schedule) {
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
}

// passOrder: register and data go from rank to rank in one message.
func (c *Call) passOrder(s *Schedule) {
	r := registerLen(c.Ranks)
	s.Register = make([]byte, r)
	all := s.reserve(r + c.Bytes)
	data := Loc{Buf: RecvBuf}
	if c.Rank == c.Root {
		c.order(s)
		_, after := c.chain()
		s.copy(all, Loc{Buf: Register}, r)
		s.copy(all.at(r), data, c.Bytes)
		s.send(after, all, r+c.Bytes, s.fence())
		return
	}
	got := s.recv(AnyRank, all, r+c.Bytes)
	s.copy(data, all.at(r), c.Bytes, got)
	s.add(Step{Kind: StepLearn, From: all, Len: r}, []int{got})
	s.learn = func(register []byte) {
		c.learned(register)
		if _, after := c.chain(); after >= 0 {
			s.send(after, all, r+c.Bytes, got)
		}
	}
}

// spreadOrder: the register goes down a binomial tree, then the data flows.
func (c *Call) spreadOrder(s *Schedule) {
	p, v, r := c.Ranks, c.virtual(), registerLen(c.Ranks)
	s.Register = make([]byte, r)
	register, got := Loc{Buf: Register}, 0
	if v == 0 {
		c.order(s)
	} else {
		got = s.recv(c.actual(parent(v)), register, r)
	}
	for d := firstChild(v, p); d > 0; d /= 2 {
		s.send(c.actual(v+d), register, r, got)
	}
	s.Window = len(s.steps) + 2
	if v == 0 {
		c.flow(s)
		return
	}
	s.add(Step{Kind: StepLearn, From: register, Len: r}, []int{got})
	s.learn = func(register []byte) {
		c.learned(register)
		c.flow(s)
	}
}

// order has the root decide, and tell in the register.
func (c *Call) order(s *Schedule) {
	status := make([]Status, c.Ranks)
	copy(status, c.Status)
	copy(s.Register, PackStatus(status))
	c.Order = TransmissionOrder(c.Root, status, c.Form)
}

// learned takes the order that the root has decided on.
func (c *Call) learned(register []byte) {
	c.Order = TransmissionOrder(c.Root, UnpackStatus(register, c.Ranks), c.Form)
}
