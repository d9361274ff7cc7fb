package coll

import "fmt"

// Algorithm is one implementation of a collective.
type Algorithm struct {
	Collective Collective
	// Name identifies the algorithm in calls and configurations. It is unique within the collective.
	Name string
	// Source cites the algorithm's origin.
	Source string
	// Segmented means that the algorithm uses Call.Segment.
	Segmented bool
	// Shares means that the ranks read each other's shared buffers instead of sending messages.
	Shares bool

	// unsupported returns the reason why the algorithm does not support the call, or "" if it does. All ranks must get
	// the same result. A nil function supports all calls.
	unsupported func(c *Call) string
	// build adds the steps of a call to the schedule. It is only called for calls with more than one rank.
	build func(c *Call, s *Schedule)
	// cost returns the cost of a call. It is only called for calls with more than one rank, and is nil for algorithms
	// that are never chosen by cost.
	cost func(c *Call) Cost
}

// byCollective holds the algorithms of each collective. It contains an entry for every value of Collective, so that the
// lookup in each call is cheap and cannot fail.
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

// ByOrder returns an algorithm for ranks that match messages by order alone, such as deployed nodes, and fills in the
// call's defaults. It prefers algorithms in which no two ranks send to each other at the same time: a deployed node
// that does so forgets the other rank's request, which is retransmitted only after 100 ms. The error is a *CallError.
func ByOrder(call *Call) (*Algorithm, error) {
	for _, name := range [...]string{"flat", "toggle", "chain"} {
		if a := Named(call.Collective, name); a != nil && a.PrepareCall(call) == nil {
			return a, nil
		}
	}
	all := algorithms[call.Collective]
	for _, a := range all {
		if a.PrepareCall(call) == nil {
			return a, nil
		}
	}
	if len(all) == 0 {
		return nil, &CallError{Collective: call.Collective,
			Problem: fmt.Sprintf("collective %d is not known", call.Collective)}
	}
	return nil, all[0].PrepareCall(call)
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
func Find(collective Collective, name string) (*Algorithm, error) {
	if a := Named(collective, name); a != nil {
		return a, nil
	}
	var names []string
	for _, a := range algorithms[collective] {
		names = append(names, a.Name)
	}
	return nil, &CallError{Collective: collective, Algorithm: name,
		Problem: fmt.Sprintf("there is no such algorithm; there are %v", names)}
}

// CheckSupport returns nil if the algorithm supports the call, and a *CallError otherwise.
func (a *Algorithm) CheckSupport(c Call) error { return a.PrepareCall(&c) }

// PrepareCall is like CheckSupport, but also fills in the call's defaults.
func (a *Algorithm) PrepareCall(call *Call) error {
	if call.Collective != a.Collective {
		return &CallError{Collective: call.Collective, Algorithm: a.Name,
			Problem: "the algorithm is for " + a.Collective.String()}
	}
	if err := call.Check(); err != nil {
		return err
	}
	if a.unsupported == nil {
		return nil
	}
	if problem := a.unsupported(call); problem != "" {
		return &CallError{Collective: call.Collective, Algorithm: a.Name, Problem: problem}
	}
	return nil
}

// Make builds the schedule of the caller's rank in s, reusing the memory of s, and fills in the call's defaults. The
// call must not be modified until the schedule has been read. The error is a *CallError.
func (a *Algorithm) Make(s *Schedule, c *Call) error {
	if err := a.PrepareCall(c); err != nil {
		return err
	}
	a.Build(s, c)
	return nil
}

// Build is like Make, but expects a call that PrepareCall has already accepted.
func (a *Algorithm) Build(schedule *Schedule, call *Call) {
	steps, stages := schedule.steps[:0], schedule.stageMemory[:0]
	*schedule = Schedule{} // a composite literal with values would be copied
	schedule.Window, schedule.token, schedule.steps, schedule.stages = 1, call.Token, steps, stages
	switch {
	case call.Ranks > 1:
		a.build(call, schedule)
	case call.Collective != Barrier && call.Collective != Bcast && call.Collective != Exscan:
		copyToRecv(call, schedule)
	}
	schedule.stageMemory = schedule.stages
}

// Cost returns the cost of the call according to the algorithm's cost function. It is an upper bound if ranks perform
// different work, or if blocks differ in size. Cost needs the sizes of all blocks, so for a Gather or Scatter with a
// Layout, only the root can call it. The error is a *CallError.
func (a *Algorithm) Cost(call Call) (Cost, error) {
	if err := a.PrepareCall(&call); err != nil {
		return Cost{}, err
	}
	switch {
	case call.Ranks == 1:
		return Cost{}, nil
	case a.cost == nil:
		return Cost{}, &CallError{Collective: call.Collective, Algorithm: a.Name, Problem: "the algorithm has no formula"}
	}
	return a.cost(&call), nil
}

// The following functions check conditions shared by several algorithms.

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
func requireChain(call *Call) string {
	if call.Order == nil {
		return ""
	}
	if len(call.Order) != call.Ranks || call.Order[0] != call.Root {
		return "the order must begin with the root and have every rank once"
	}
	seen := make([]bool, call.Ranks)
	for _, r := range call.Order {
		if r < 0 || r >= call.Ranks || seen[r] {
			return "the order must begin with the root and have every rank once"
		}
		seen[r] = true
	}
	return ""
}

// copyToRecv adds the only step of a call with a single rank: it copies the rank's contribution to its receive buffer.
func copyToRecv(call *Call, schedule *Schedule) {
	if call.InPlace {
		return
	}
	n, from, into := call.Bytes, 0, 0
	if call.Vector {
		switch call.Collective {
		case Scatter:
			from, n = call.Block(&call.Send, 0)
		case Alltoall:
			from, _ = call.Block(&call.Send, 0)
			into, n = call.Block(&call.Recv, 0)
		default:
			into, n = call.Block(&call.Recv, 0)
		}
	}
	schedule.copy(Loc{RecvBuf, into}, Loc{SendBuf, from}, n)
}
