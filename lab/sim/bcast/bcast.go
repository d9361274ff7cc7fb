// Package bcast models the hardware of Park, Efficient Pipelined Broadcast with Monitoring Processing Node Status
// (2019). Nodes with message passing engines are connected by a crossbar, and broadcast by the schedules of mpe/coll.
//
// docs/papers.md lists the assumptions made where the source is silent. The only constants of the model are the cycles
// that single actions take.
package bcast

import (
	"errors"
	"fmt"

	"github.com/zrlmpi/zrlmpid/lab/sim"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Variant is one of the broadcast algorithms in the source.
type Variant uint8

// The variants are the conventional pipelined broadcast, which synchronizes each of k segments (2.2); the atomic
// pipelined broadcast (3.1); and the atomic broadcast with the initial (3.2.1) and with the full change of the
// transmission order (3.2.2).
const (
	Pipelined Variant = iota
	Atomic
	InitialOrder
	FullOrder
)

var variants = [...]struct {
	name, algorithm string
	form            coll.OrderForm
}{
	Pipelined:    {"pipelined", "chain", coll.OrderFixed},
	Atomic:       {"atomic", "atomic", coll.OrderFixed},
	InitialOrder: {"initial-order", "atomic", coll.OrderFreeFirst},
	FullOrder:    {"full-order", "atomic", coll.OrderByLeft},
}

// Variants returns all variants.
func Variants() []Variant { return []Variant{Pipelined, Atomic, InitialOrder, FullOrder} }

func (v Variant) String() string {
	if int(v) >= len(variants) {
		return "?"
	}
	return variants[v].name
}

// MarshalText returns the name of the variant.
func (v Variant) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Bounds of a Setup.
const (
	MaxNodes = 256
	MaxBytes = 64 << 10
)

// Setup describes a broadcast, and the machine on which it runs.
type Setup struct {
	// Nodes is the number of nodes. Root is the node that broadcasts its data.
	Nodes, Root int
	// Bytes is the length of the data. Word is the number of bytes carried over a hop per cycle.
	Bytes, Word int
	// BusyBytes maps a node to the number of bytes that it still has to send when the broadcast begins. Other nodes are
	// idle.
	BusyBytes map[int]int
}

// ErrSetup matches every *SetupError.
var ErrSetup = errors.New("impossible setup")

// SetupError describes an invalid Setup.
type SetupError struct{ Problem string }

func (e *SetupError) Error() string { return e.Problem }

// Is reports whether target is ErrSetup.
func (e *SetupError) Is(target error) bool { return target == ErrSetup }

func (s *Setup) validate() error {
	bad := func(format string, args ...any) error { return &SetupError{fmt.Sprintf(format, args...)} }
	switch {
	case s.Nodes < 2 || s.Nodes > MaxNodes:
		return bad("%d nodes: must be 2 to %d", s.Nodes, MaxNodes)
	case s.Root < 0 || s.Root >= s.Nodes:
		return bad("root %d: must be 0 to %d", s.Root, s.Nodes-1)
	case s.Bytes < 1 || s.Bytes > MaxBytes:
		return bad("%d bytes: must be 1 to %d", s.Bytes, MaxBytes)
	case s.Word < 1 || s.Word > MaxBytes:
		return bad("words of %d bytes: must be 1 to %d", s.Word, MaxBytes)
	}
	for r := range s.BusyBytes {
		if r < 0 || r >= s.Nodes {
			return bad("busy node %d: must be 0 to %d", r, s.Nodes-1)
		}
	}
	for r := range s.Nodes {
		if n := s.BusyBytes[r]; n < 0 || n > MaxBytes {
			return bad("busy node %d has %d bytes left: must be 0 to %d", r, n, MaxBytes)
		}
	}
	return nil
}

// Result holds the outcome of one simulated broadcast.
type Result struct {
	Variant Variant
	// Cycles is the time at which the last node completed the broadcast.
	Cycles sim.Cycle
	// Segments is the number of messages into which the data is divided (k in equation 1). Sync is the number of cycles
	// in which a node synchronizes them if it never waits for another node (equation 2).
	Segments   int
	SyncCycles sim.Cycle
	// Order is the order of the nodes in the chain.
	Order []int
	// Events is the number of events simulated.
	Events uint64
}

// Run simulates a broadcast. Errors are of type *SetupError.
func Run(setup Setup, variant Variant) (Result, error) {
	if err := setup.validate(); err != nil {
		return Result{}, err
	}
	form := variants[variant].form
	status := make([]coll.Status, setup.Nodes)
	for r := range status {
		status[r] = coll.StatusOf(setup.BusyBytes[r])
	}
	order := coll.TransmissionOrder(setup.Root, status, form)
	call := coll.Call{Collective: coll.Bcast, Ranks: setup.Nodes, Root: setup.Root, Bytes: setup.Bytes, Order: order,
		OrderForm: form, Flows: true, NoCredit: true}
	result := Result{Variant: variant, Segments: 1, Order: order}
	if variant == Pipelined {
		whole := numWords(setup.Bytes, setup.Word) * setup.Word
		call.Segment = coll.PipelineSegment(setup.Nodes, whole, setup.Word, float64(syncCycles), 1/float64(setup.Word))
		result.Segments = numWords(setup.Bytes, call.Segment)
	}
	result.SyncCycles = sim.Cycle(result.Segments) * syncCycles
	algorithm, err := coll.Find(coll.Bcast, variants[variant].algorithm)
	if err != nil {
		return Result{}, err
	}
	m := machine{word: setup.Word, nodes: make([]*node, setup.Nodes)}
	calls := make([]coll.Call, setup.Nodes) // the schedules refer to them
	for r := range m.nodes {
		n := &node{machine: &m}
		m.nodes[r], calls[r] = n, call
		calls[r].Rank = r
		if err := algorithm.Make(&n.schedule, &calls[r]); err != nil {
			return Result{}, err
		}
		n.progress.Begin(&n.schedule)
	}
	m.scheduleIssue(setup, form)
	m.clock.Run()
	for r, n := range m.nodes {
		if !n.progress.IsDone() {
			return Result{}, fmt.Errorf("node %d did not complete its schedule: an error of the model", r)
		}
	}
	result.Cycles, result.Events = m.endCycle, m.clock.Events()
	return result, nil
}

// scheduleIssue schedules when each node issues its operations. A node first sends the data in its issue queue. If the
// order is fixed, a barrier comes first: the broadcast begins when the status register shows that all nodes are free.
func (m *machine) scheduleIssue(setup Setup, form coll.OrderForm) {
	var all sim.Cycle
	free := make([]sim.Cycle, len(m.nodes))
	for r := range free {
		free[r] = sim.Cycle(numWords(setup.BusyBytes[r], setup.Word))
		all = max(all, free[r])
	}
	for r, n := range m.nodes {
		if form == coll.OrderFixed {
			free[r] = all
		}
		m.clock.After(free[r], n.issue)
	}
}
