package collcheck

import (
	"fmt"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// sharedSimulation executes schedules on shared buffers, one step of a rank at a time. It uses vector clocks: a rank's
// clock holds, for each other rank, the last step known to have happened before, because the rank has awaited a later
// publication. It thus finds conflicting accesses to a shared buffer regardless of the simulated order of execution.
type sharedSimulation struct {
	ranks []*sharer
	mem   memory
}

// sharer is a rank in a sharedSimulation. next is the index of its next step.
type sharer struct {
	*Program
	rank, next int
	clock      []int
	// published holds the clock at each publication.
	published [][]int
	// bytes holds the state of each byte of the rank's shared buffer.
	bytes []sharedByte
}

// sharedByte is the state of a byte: the owner's step that wrote it last, and for each rank that has read it since, the
// last step that did.
type sharedByte struct {
	written int
	read    map[int]int
}

func newSharedSim(programs []Program, mem memory, shared int) *sharedSimulation {
	w := &sharedSimulation{mem: mem}
	for r := range programs {
		w.ranks = append(w.ranks,
			&sharer{Program: &programs[r], rank: r, clock: make([]int, len(programs)),
				bytes: make([]sharedByte, shared)})
	}
	return w
}

// run executes steps until no rank can continue.
func (w *sharedSimulation) run() error {
	for again := true; again; {
		again = false
		for _, p := range w.ranks {
			for p.next < len(p.Steps) && p.ready(w) {
				p.clock[p.rank]++
				if err := w.step(p, &p.Steps[p.next]); err != nil {
					return scheduleError(p.rank, p.next+1, "%v: %v", p.Steps[p.next].Kind, err)
				}
				p.next++
				again = true
			}
		}
	}
	for _, p := range w.ranks {
		if p.next < len(p.Steps) {
			s := &p.Steps[p.next]
			return scheduleError(p.rank, p.next+1, "deadlock: the %v of %d publications of rank %d never ends", s.Kind, s.Count,
				s.Peer)
		}
	}
	return nil
}

// awaited returns the ranks whose publications a step awaits.
func (p *sharer) awaited(w *sharedSimulation, s *coll.Step) []*sharer {
	switch {
	case s.Kind != coll.StepAwait:
		return nil
	case s.Peer != coll.AllRanks:
		return w.ranks[s.Peer : s.Peer+1]
	}
	return slices.Concat(w.ranks[:p.rank], w.ranks[p.rank+1:])
}

// ready reports whether the next step can be executed.
func (p *sharer) ready(w *sharedSimulation) bool {
	s := &p.Steps[p.next]
	for _, q := range p.awaited(w, s) {
		if len(q.published) < s.Count {
			return false
		}
	}
	return true
}

// step executes a step. An await takes over the clock of the publication, which makes all steps before that publication
// known to the waiting rank.
func (w *sharedSimulation) step(p *sharer, s *coll.Step) error {
	if s.After != [3]int{} {
		return fmt.Errorf("it names steps to wait for in a schedule that is in order")
	}
	switch s.Kind {
	case coll.StepPublish:
		p.published = append(p.published, slices.Clone(p.clock))
		return nil
	case coll.StepAwait:
		if s.Count < 1 {
			return fmt.Errorf("it waits for %d publications", s.Count)
		}
		for _, q := range p.awaited(w, s) {
			for i, c := range q.published[s.Count-1] {
				p.clock[i] = max(p.clock[i], c)
			}
		}
		return nil
	case coll.StepCopy, coll.StepPack, coll.StepReduce:
	default:
		return fmt.Errorf("it is not allowed in schedules that are in order")
	}
	from := p.rank
	reads, writes := s.Extents()
	for _, at := range []coll.Loc{s.From, s.With} {
		if at.Buf == coll.Shared {
			from = s.Peer
			if err := w.reads(p, w.ranks[from], at.Off, reads); err != nil {
				return err
			}
		}
	}
	if s.Into.Buf == coll.Shared {
		if err := p.writes(s.Into.Off, writes); err != nil {
			return err
		}
	}
	if s.Kind == coll.StepReduce {
		return w.mem.reduce(from, p.rank, s)
	}
	count, stride := 1, 0
	if s.Kind == coll.StepPack {
		count, stride = s.Count, s.Stride
	}
	for i := range count {
		at, into := coll.Loc{Buf: s.From.Buf, Off: s.From.Off + i*stride},
			coll.Loc{Buf: s.Into.Buf, Off: s.Into.Off + i*s.Len}
		if err := w.mem.move(from, at, p.rank, into, s.Len); err != nil {
			return err
		}
	}
	return nil
}

// reads checks that q wrote the bytes of its shared buffer before p reads them, and records the read.
func (w *sharedSimulation) reads(p, q *sharer, off, n int) error {
	for i := max(off, 0); i < off+n && i < len(q.bytes); i++ {
		b := &q.bytes[i]
		if b.written > p.clock[q.rank] {
			return fmt.Errorf("byte %d of rank %d's shared buffer, which may not be written yet", i, q.rank)
		}
		if p == q {
			continue
		}
		if b.read == nil {
			b.read = map[int]int{}
		}
		b.read[p.rank] = p.clock[p.rank]
	}
	return nil
}

// writes checks that all earlier reads of the bytes that p overwrites happened before, and records the write.
func (p *sharer) writes(off, n int) error {
	for i := max(off, 0); i < off+n && i < len(p.bytes); i++ {
		b := &p.bytes[i]
		for r, at := range b.read {
			if at > p.clock[r] {
				return fmt.Errorf("byte %d of the shared buffer, which rank %d may still read", i, r)
			}
		}
		*b = sharedByte{written: p.clock[p.rank]}
	}
	return nil
}

// proveShared proves schedules on shared buffers.
func proveShared(calls []coll.Call, programs []Program) error {
	m := newSymbols(calls, programs)
	w := newSharedSim(programs, m, calls[0].Shared)
	for r := range programs {
		if !programs[r].InOrder {
			return scheduleError(r, 0, "it is not in order, unlike the schedule of rank 0")
		}
	}
	if err := w.run(); err != nil {
		return err
	}
	if err := m.verify(calls); err != nil {
		return err
	}
	if calls[0].Collective != coll.Barrier {
		return nil
	}
	for _, p := range w.ranks {
		if missing := slices.Index(p.clock, 0); missing >= 0 {
			return scheduleError(p.rank, 0, "leaves before rank %d is known to have entered", missing)
		}
	}
	return nil
}
