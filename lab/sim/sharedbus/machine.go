package sharedbus

import (
	"iter"

	"github.com/zrlmpi/zrlmpid/lab/sim"
)

// Costs are what things take on a processor, in cycles.
type Costs struct {
	// Bus is how long an access holds the bus, and Word what a processor takes for one beside.
	Bus, Word sim.Cycle
	// Envelope is what a processor takes for an envelope beside accesses to it: before it writes one, or
	// when it has read the value for which it waits.
	Envelope sim.Cycle
	// Element is what a step of the inner loop takes.
	Element sim.Cycle
}

// machine is processors with a shared memory on a bus that serves them in turn.
type machine struct {
	clock  sim.Clock
	costs  Costs
	memory []uint32
	// block is how many words each pair has: a tag, and data.
	block int
	procs []*proc
	// busy: an access is under way; last is the processor that made the last.
	busy bool
	last int
}

// proc is a processor. Its program is a sequence of actions, each of which it begins when the one
// before has ended.
type proc struct {
	machine *machine
	rank    int
	next    func() (action, bool)
	// access is what the processor waits for the bus for.
	access func()
}

// action is a time that the processor computes, or an access to the memory.
type action struct {
	cycles sim.Cycle
	access func()
}

func (m *machine) run(programs []iter.Seq[action]) sim.Cycle {
	for r, program := range programs {
		next, stop := iter.Pull(program)
		defer stop()
		p := &proc{machine: m, rank: r, next: next}
		m.procs = append(m.procs, p)
		m.clock.After(0, p.step)
	}
	m.clock.Run()
	return m.clock.Now()
}

// step begins the next action.
func (p *proc) step() {
	a, ok := p.next()
	if !ok {
		return
	}
	m := p.machine
	m.clock.After(a.cycles, func() {
		if a.access == nil {
			p.step()
			return
		}
		p.access = a.access
		m.serve()
	})
}

// serve has the next processor in turn access the memory.
func (m *machine) serve() {
	if m.busy {
		return
	}
	for i := range m.procs {
		p := m.procs[(m.last+1+i)%len(m.procs)]
		if p.access == nil {
			continue
		}
		m.busy, m.last = true, p.rank
		m.clock.After(m.costs.Bus, func() {
			access := p.access
			p.access, m.busy = nil, false
			access()
			p.step()
			m.serve()
		})
		return
	}
}
