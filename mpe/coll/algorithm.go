package coll

import "fmt"

// Algorithm is one implementation of a collective.
type Algorithm struct {
	Collective Collective
	// Name is the name in calls and configurations, unique within the collective.
	Name string
	// Source cites the algorithm's origin.
	Source string
	// Segmented means that the algorithm uses Call.Segment.
	Segmented bool
	// Shares means that the ranks read each other's shared buffers, and send no messages.
	Shares bool

	// unsupported returns the reason why the algorithm does not support the call, or "". The result must be the same on all
	// ranks.
	unsupported func(c *Call) string
	// build adds the steps of a call with more than one rank to the schedule.
	build func(c *Call, s *Schedule)
	// cost is the cost function for more than one rank, or nil if no choice uses it.
	cost func(c *Call) Cost
}

// byCollective holds the algorithms of each collective. It has an entry for every value of Collective, because
// every call looks up its algorithm.
type byCollective [1 << 8][]*Algorithm

// algorithms lists the algorithms of each collective. The first one supports every call.
var algorithms = withCollective(byCollective{
	Barrier: {barrierDissemination, barrierToggle, barrierShared},
	Bcast:   {bcastBinomial, bcastFlat, bcastScatterAllgather, bcastChain, bcastAtomic, bcastTree, bcastShared},
	Reduce:  {reduceBinomial, reduceFlat, reduceRabenseifner, reduceTree, reduceShared, reduceSharedBlocks},
	Allreduce: {allreduceDoubling, allreduceRabenseifner, allreduceRing, allreduceFlat, allreduceShared,
		allreduceSharedBlocks},
	Gather:        {gatherFlat, gatherBinomial, gatherTree, gatherShared},
	Scatter:       {scatterFlat, scatterBinomial, scatterTree, scatterShared},
	Allgather:     {allgatherRing, allgatherBruck, allgatherDoubling, allgatherShared},
	Alltoall:      {alltoallPairwise, alltoallBruck, alltoallGatherScatter, alltoallShared},
	ReduceScatter: {reduceScatterPairwise, reduceScatterHalving, reduceScatterShared},
	Scan:          {scanDoubling, scanChain, scanShared},
	Exscan:        {exscanDoubling, exscanChain, exscanShared},
})

// withCollective sets the collective of each algorithm.
func withCollective(all byCollective) byCollective {
	for c, list := range all {
		for _, a := range list {
			a.Collective = Collective(c)
		}
	}
	return all
}

// Algorithms returns the algorithms of a collective. The first one supports every call.
func Algorithms(c Collective) []*Algorithm { return append([]*Algorithm(nil), algorithms[c]...) }

// MatchesByOrder returns the first algorithm that supports the call, and fills in the call's defaults. It is for ranks
// that match messages by order alone, such as deployed nodes. It prefers algorithms in which no two ranks send to
// each other at the same time, because a deployed node that does so forgets the other rank's request, which is
// retransmitted only after 100 ms. The error is a *CallError.
func ByOrder(c *Call) (*Algorithm, error) {
	for _, name := range [...]string{"flat", "toggle", "chain"} {
		if a := Named(c.Collective, name); a != nil && a.PrepareCall(c) == nil {
			return a, nil
		}
	}
	all := algorithms[c.Collective]
	for _, a := range all {
		if a.PrepareCall(c) == nil {
			return a, nil
		}
	}
	if len(all) == 0 {
		return nil, &CallError{Collective: c.Collective,
			Problem: fmt.Sprintf("collective %d is not known", c.Collective)}
	}
	return nil, all[0].PrepareCall(c)
}

// Named returns the algorithm with the given name, or nil.
func Named(c Collective, name string) *Algorithm {
	for _, a := range algorithms[c] {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// Find returns the algorithm with the given name, or a *CallError.
func Find(c Collective, name string) (*Algorithm, error) {
	if a := Named(c, name); a != nil {
		return a, nil
	}
	var names []string
	for _, a := range algorithms[c] {
		names = append(names, a.Name)
	}
	return nil, &CallError{Collective: c, Algorithm: name,
		Problem: fmt.Sprintf("there is no such algorithm; there are %v", names)}
}

// CheckSupport returns nil if the algorithm supports the call, and a *CallError otherwise.
func (a *Algorithm) CheckSupport(c Call) error { return a.PrepareCall(&c) }

// PrepareCall is like Fits, but also fills in the call's defaults.
func (a *Algorithm) PrepareCall(c *Call) error {
	if c.Collective != a.Collective {
		return &CallError{Collective: c.Collective, Algorithm: a.Name,
			Problem: "the algorithm is for " + a.Collective.String()}
	}
	if err := c.Check(); err != nil {
		return err
	}
	if a.unsupported == nil {
		return nil
	}
	if problem := a.unsupported(c); problem != "" {
		return &CallError{Collective: c.Collective, Algorithm: a.Name, Problem: problem}
	}
	return nil
}

// Make makes the caller's schedule in s, reusing its memory, and fills in the call's defaults. The call must not be
// modified until the schedule has been read. The error is a *CallError.
func (a *Algorithm) Make(s *Schedule, c *Call) error {
	if err := a.PrepareCall(c); err != nil {
		return err
	}
	a.Build(s, c)
	return nil
}

// Build is Make for a call that Accepts has accepted.
func (a *Algorithm) Build(s *Schedule, c *Call) {
	steps, stages := s.steps[:0], s.stageMemory[:0]
	*s = Schedule{} // a composite literal with values would be copied
	s.Window, s.token, s.steps, s.stages = 1, c.Token, steps, stages
	switch {
	case c.Ranks > 1:
		a.build(c, s)
	case c.Collective != Barrier && c.Collective != Bcast && c.Collective != Exscan:
		copyToRecv(c, s)
	}
	s.stageMemory = s.stages
}

// Cost returns the cost of the call according to the algorithm's cost function. It is an upper bound if ranks do
// different work or blocks differ in size. For calls with a Layout, Cost needs the sizes of all blocks, so only the
// root of a Gather or Scatter can call it. The error is a *CallError.
func (a *Algorithm) Cost(c Call) (Cost, error) {
	if err := a.PrepareCall(&c); err != nil {
		return Cost{}, err
	}
	switch {
	case c.Ranks == 1:
		return Cost{}, nil
	case a.cost == nil:
		return Cost{}, &CallError{Collective: c.Collective, Algorithm: a.Name, Problem: "the algorithm has no formula"}
	}
	return a.cost(&c), nil
}

// Conditions that several algorithms have in common.

// requireUniform requires that all blocks have the same size.
func requireUniform(c *Call) string {
	if c.Vector {
		return "blocks must be of one size"
	}
	return ""
}

// requireCommutative requires a commutative operation.
func requireCommutative(c *Call) string {
	if c.Ordered {
		return "the operation must be commutative"
	}
	return ""
}

// requireChain requires a valid Order, or none.
func requireChain(c *Call) string {
	if c.Order == nil {
		return ""
	}
	if len(c.Order) != c.Ranks || c.Order[0] != c.Root {
		return "the order must begin with the root and have every rank once"
	}
	seen := make([]bool, c.Ranks)
	for _, r := range c.Order {
		if r < 0 || r >= c.Ranks || seen[r] {
			return "the order must begin with the root and have every rank once"
		}
		seen[r] = true
	}
	return ""
}

// copyToRecv adds the steps of a call of a single rank, which copies its contribution.
func copyToRecv(c *Call, s *Schedule) {
	if c.InPlace {
		return
	}
	n, from, into := c.Bytes, 0, 0
	if c.Vector {
		switch c.Collective {
		case Scatter:
			from, n = c.Block(&c.Send, 0)
		case Alltoall:
			from, _ = c.Block(&c.Send, 0)
			into, n = c.Block(&c.Recv, 0)
		default:
			into, n = c.Block(&c.Recv, 0)
		}
	}
	s.copy(Loc{RecvBuf, into}, Loc{SendBuf, from}, n)
}
