package coll

import "fmt"

// Algorithm is one way to carry out a collective.
type Algorithm struct {
	Collective Collective
	// Name is what users call it, unique within the collective.
	Name string
	// Source says where it comes from.
	Source string
	// Segmented: it cuts by Call.Segment.
	Segmented bool
	// Shares: the ranks read each other's shared buffers, and send no messages.
	Shares bool

	// fits says what the call asks that the algorithm cannot do, or "". It has to
	// come to the same on all ranks.
	fits func(c *Call) string
	// build makes the steps of a call of more than one rank.
	build func(c *Call, s *Schedule)
	// cost is the formula, for more than one rank; nil if nothing chooses by it.
	cost func(c *Call) Cost
}

// byCollective has algorithms by collective, of any value: each call looks its algorithm up.
type byCollective [1 << 8][]*Algorithm

// algorithms has those of each collective. The first fits every call.
var algorithms = listed(byCollective{
	Barrier:       {barrierDissemination, barrierToggle, barrierShared},
	Bcast:         {bcastBinomial, bcastFlat, bcastScatterAllgather, bcastChain, bcastAtomic, bcastTree, bcastShared},
	Reduce:        {reduceBinomial, reduceFlat, reduceRabenseifner, reduceTree, reduceShared, reduceSharedBlocks},
	Allreduce:     {allreduceDoubling, allreduceRabenseifner, allreduceRing, allreduceFlat, allreduceShared, allreduceSharedBlocks},
	Gather:        {gatherFlat, gatherBinomial, gatherTree, gatherShared},
	Scatter:       {scatterFlat, scatterBinomial, scatterTree, scatterShared},
	Allgather:     {allgatherRing, allgatherBruck, allgatherDoubling, allgatherShared},
	Alltoall:      {alltoallPairwise, alltoallBruck, alltoallGatherScatter, alltoallShared},
	ReduceScatter: {reduceScatterPairwise, reduceScatterHalving, reduceScatterShared},
	Scan:          {scanDoubling, scanChain, scanShared},
	Exscan:        {exscanDoubling, exscanChain, exscanShared},
})

// listed sets the collective of each algorithm: that of the list it is in.
func listed(all byCollective) byCollective {
	for c, list := range all {
		for _, a := range list {
			a.Collective = Collective(c)
		}
	}
	return all
}

// Algorithms gives those of a collective. The first fits every call.
func Algorithms(c Collective) []*Algorithm { return append([]*Algorithm(nil), algorithms[c]...) }

// ByOrder gives the first algorithm that can carry out the call, in which it fills in what
// was left out, for ranks for which messages match by order alone, as deployed nodes:
// before all others come algorithms in which no two ranks send to each other at a time. A
// deployed node forgets the other's request then, which comes again after 100 ms. If none
// can, the error is a *CallError.
func ByOrder(c *Call) (*Algorithm, error) {
	for _, name := range [...]string{"flat", "toggle", "chain"} {
		if a := Named(c.Collective, name); a != nil && a.Accepts(c) == nil {
			return a, nil
		}
	}
	all := algorithms[c.Collective]
	for _, a := range all {
		if a.Accepts(c) == nil {
			return a, nil
		}
	}
	if len(all) == 0 {
		return nil, &CallError{Collective: c.Collective, Problem: fmt.Sprintf("collective %d is not known", c.Collective)}
	}
	return nil, all[0].Accepts(c)
}

// Named gives the algorithm of that name, or nil.
func Named(c Collective, name string) *Algorithm {
	for _, a := range algorithms[c] {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// Find gives the algorithm of that name, or a *CallError.
func Find(c Collective, name string) (*Algorithm, error) {
	if a := Named(c, name); a != nil {
		return a, nil
	}
	var names []string
	for _, a := range algorithms[c] {
		names = append(names, a.Name)
	}
	return nil, &CallError{Collective: c, Algorithm: name, Problem: fmt.Sprintf("there is no such algorithm; there are %v", names)}
}

// Fits reports whether the algorithm can carry out the call, as a *CallError if it
// cannot.
func (a *Algorithm) Fits(c Call) error { return a.Accepts(&c) }

// Accepts is Fits, and fills in what was left out of the call.
func (a *Algorithm) Accepts(c *Call) error {
	if c.Collective != a.Collective {
		return &CallError{Collective: c.Collective, Algorithm: a.Name, Problem: "the algorithm is for " + a.Collective.String()}
	}
	if err := c.Check(); err != nil {
		return err
	}
	if a.fits == nil {
		return nil
	}
	if problem := a.fits(c); problem != "" {
		return &CallError{Collective: c.Collective, Algorithm: a.Name, Problem: problem}
	}
	return nil
}

// Make makes the schedule of the rank that calls, in the memory of an earlier one, and
// fills in what was left out of the call. The call is not to be touched until the schedule
// has been read. The error is a *CallError.
func (a *Algorithm) Make(s *Schedule, c *Call) error {
	if err := a.Accepts(c); err != nil {
		return err
	}
	a.Build(s, c)
	return nil
}

// Build is Make of a call that was accepted.
func (a *Algorithm) Build(s *Schedule, c *Call) {
	steps, stages := s.steps[:0], s.memory[:0]
	*s = Schedule{} // one with values would be made elsewhere, and copied
	s.Window, s.token, s.steps, s.stages = 1, c.Token, steps, stages
	switch {
	case c.Ranks > 1:
		a.build(c, s)
	case c.Collective != Barrier && c.Collective != Bcast && c.Collective != Exscan:
		toRecv(c, s)
	}
	s.memory = s.stages
}

// Cost is what the call costs, by the formula, or a *CallError. Where ranks do not all
// do the same, or blocks are of different sizes, it is a bound that may not be reached.
// For calls with a Layout it needs all sizes, so only the root of Gather and Scatter can
// ask.
func (a *Algorithm) Cost(c Call) (Cost, error) {
	if err := a.Accepts(&c); err != nil {
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

// What algorithms have in common.

// uniform: only blocks of one size.
func uniform(c *Call) string {
	if c.Vector {
		return "blocks must be of one size"
	}
	return ""
}

// unordered: only commutative operations.
func unordered(c *Call) string {
	if c.Ordered {
		return "the operation must be commutative"
	}
	return ""
}

// chained: an Order must be one.
func chained(c *Call) string {
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

// toRecv is a call of a single rank: what it gives is what it gets.
func toRecv(c *Call, s *Schedule) {
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
