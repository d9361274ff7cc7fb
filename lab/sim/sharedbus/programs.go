// Package sharedbus models an MPI library for soft processors on an FPGA. The processors have local memories, and share
// one memory over a bus that serves them round-robin. The shared memory contains N × (N − 1) blocks, one for each
// pair of a sender and a receiver. A block consists of an envelope and data.
package sharedbus

import (
	"fmt"
	"iter"

	"github.com/zrlmpi/zrlmpid/lab/sim"
)

// Hardware parameters that the source states.
const (
	MHz         = 100
	wordBytes   = 4
	memoryWords = 8 << 10 / wordBytes
)

// Bounds of a program.
const (
	MaxSize       = 1000
	MaxProcessors = 16
)

// Program is one of the programs that the source measures.
type Program struct {
	Name string
	// Costs holds the costs that the function Run uses by default.
	Costs Costs
	run   func(r *rank, n int) bool
}

// Costs that all programs share. The bus arbitrates in 3 cycles (Xilinx, AXI Interconnect, PG059). The other costs are
// fitted to the source's times for one and for two processors, where the bus makes no difference.
const (
	busCycles      sim.Cycle = 3
	wordCycles     sim.Cycle = 45
	envelopeCycles sim.Cycle = 280
)

// MatVec multiplies a matrix by a vector.
func MatVec() Program {
	return Program{"matvec", Costs{busCycles, wordCycles, envelopeCycles, 889}, matvec}
}

// BackSub solves a triangular system of equations.
func BackSub() Program {
	return Program{"backsub", Costs{busCycles, wordCycles, envelopeCycles, 925}, backsub}
}

// Result holds the time that a simulated program took.
type Result struct {
	Cycles sim.Cycle
	Events uint64
}

// Milliseconds returns the duration of the program.
func (r Result) Milliseconds() float64 { return float64(r.Cycles) / (MHz * 1000) }

// Run simulates a program with n × n elements.
func (p Program) Run(n, processors int) (Result, error) {
	switch {
	case n < 1 || n > MaxSize:
		return Result{}, fmt.Errorf("size %d: must be 1 to %d", n, MaxSize)
	case processors < 1 || processors > MaxProcessors:
		return Result{}, fmt.Errorf("%d processors: must be 1 to %d", processors, MaxProcessors)
	}
	m := &machine{costs: p.Costs, memory: make([]uint32, memoryWords),
		block: (memoryWords - 1) / max(processors*(processors-1), 1)}
	var programs []iter.Seq[action]
	ended := 0
	for i := range processors {
		programs = append(programs, func(yield func(action) bool) {
			if p.run(&rank{machine: m, rank: i, ranks: processors, yield: yield}, n) {
				ended++
			}
		})
	}
	cycles := m.run(programs)
	if ended != processors {
		return Result{}, fmt.Errorf("%d of %d processors ended: an error of the model", ended, processors)
	}
	return Result{cycles, m.clock.Events()}, nil
}

// matvec multiplies a matrix by a vector. Processor 0 broadcasts the vector, deals the rows to the processors one by
// one, and gathers the products.
func matvec(r *rank, n int) bool {
	if !r.bcast(n) {
		return false
	}
	for first := 0; first < n; first += r.ranks {
		switch {
		case r.rank == 0:
			for to := 1; to < min(r.ranks, n-first); to++ {
				if !r.send(to, n) {
					return false
				}
			}
		case first+r.rank >= n:
			continue
		case !r.recv(0, n):
			return false
		}
		if !r.compute(sim.Cycle(n) * r.machine.costs.Element) {
			return false
		}
	}
	return r.gather(n)
}

// backsub solves a triangular system of equations. In each step, processor 0 broadcasts a column and its pivot, and all
// processors update their elements of the right-hand side. The elements are dealt round-robin.
func backsub(r *rank, n int) bool {
	for i := n - 1; i >= 0; i-- {
		if !r.bcast(i+1) || !r.compute(sim.Cycle(share(i, r.rank, r.ranks))*r.machine.costs.Element) {
			return false
		}
	}
	return r.gather(n)
}
