package collcheck

import (
	"math/bits"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Cost is the cost of a call counted in its schedules, and the number of messages and bytes sent by all ranks.
type Cost struct {
	coll.Cost
	Messages, Volume int
}

// Prove proves the schedules of all ranks of a call, where calls[i] is the call of rank i. It returns the cost of the
// call, or the zero Cost for schedules on shared buffers. The error is an *Error, or a *coll.CallError if the algorithm
// does not support the call.
func Prove(a *coll.Algorithm, calls []coll.Call) (Cost, error) {
	programs, err := Programs(a, calls)
	if err != nil {
		return Cost{}, err
	}
	return ProvePrograms(calls, programs)
}

// ProvePrograms is Prove for given programs, which need not come from an algorithm.
func ProvePrograms(calls []coll.Call, programs []Program) (Cost, error) {
	if programs[0].InOrder {
		return Cost{}, proveShared(calls, programs)
	}
	var h hazards
	for r := range programs {
		if programs[r].Window < 1 {
			return Cost{}, scheduleError(r, 0, "a window of %d", programs[r].Window)
		}
		if err := h.check(r, &programs[r]); err != nil {
			return Cost{}, err
		}
	}
	c := &calls[0]
	needs := c.Collective == coll.Barrier
	m := newSymbols(calls, programs)
	w := newSimulation(programs, m, 0, needs)
	if err := w.run(); err != nil {
		return w.sum, err
	}
	if err := m.verify(calls); err != nil {
		return w.sum, err
	}
	if needs {
		if err := w.synchronised(); err != nil {
			return w.sum, err
		}
	}
	// Again, with an unlimited window.
	fast := newSimulation(programs, noMemory{}, unlimited, false)
	err := fast.run()
	return fast.sum, err
}

// noMemory is a memory without content.
type noMemory struct{}

func (noMemory) move(int, coll.Loc, int, coll.Loc, int) error { return nil }
func (noMemory) reduce(int, int, *coll.Step) error            { return nil }

// synchronised proves that no rank leaves a barrier before all ranks have entered it.
func (w *simulation) synchronised() error {
	for _, p := range w.ranks {
		left := make([]uint64, p.words)
		for i := range p.Steps {
			row := p.needs[i*p.words : (i+1)*p.words]
			for x := range row {
				left[x] |= row[x]
			}
		}
		if len(w.ranks) > 1 && count(left) < len(w.ranks) {
			return scheduleError(p.rank, 0, "leaves when %d of %d ranks are known to have entered", count(left), len(w.ranks))
		}
	}
	return nil
}

func count(row []uint64) (n int) {
	for _, w := range row {
		n += bits.OnesCount64(w)
	}
	return n
}
