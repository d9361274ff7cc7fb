package sharedbus

import (
	"iter"

	"github.com/zrlmpi/zrlmpid/lab/sim"
)

// Costs holds what the operations of a processor cost, in cycles.
type Costs struct {
	// Bus is the time for which an access holds the bus. Word is the additional processor time of an access.
	Bus, Word sim.Cycle
	// Envelope is the processor time for an envelope in addition to the access: before writing the envelope, or after
	// reading its expected value.
	Envelope sim.Cycle
	// Element is the cost of one step of the inner loop.
	Element sim.Cycle
}

// machine consists of processors and a shared memory, connected by a bus that serves the processors round-robin.
type machine struct {
	clock  sim.Clock
	costs  Costs
	memory []uint32
	// block is the number of memory words reserved for each pair of processors. They hold an envelope and data.
	block int
	procs []*proc
	// isBusBusy reports whether an access is in progress. last is the processor that made the last access.
	isBusBusy bool
	last      int
}

// proc models a processor. Its program is a sequence of actions, which it executes strictly in order.
type proc struct {
	machine *machine
	rank    int
	next    func() (action, bool)
	// access is the memory access for which the processor waits for the bus, or nil.
	access func()
}

// action is a computation that takes a number of cycles, followed by a memory access unless access is nil.
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
		m.grantBus()
	})
}

// grantBus lets the next waiting processor use the bus.
func (m *machine) grantBus() {
	if m.isBusBusy {
		return
	}
	for i := range m.procs {
		p := m.procs[(m.last+1+i)%len(m.procs)]
		if p.access == nil {
			continue
		}
		m.isBusBusy, m.last = true, p.rank
		m.clock.After(m.costs.Bus, func() {
			access := p.access
			p.access, m.isBusBusy = nil, false
			access()
			p.step()
			m.grantBus()
		})
		return
	}
}
