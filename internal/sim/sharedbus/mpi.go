package sharedbus

import (
	"github.com/zrlmpi/zrlmpid/internal/sim"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// rank is a processor's end of the library. Its calls return false when the program is not to go on.
type rank struct {
	m           *machine
	rank, ranks int
	yield       func(action) bool
	// barriers counts barriers.
	barriers uint32
}

// The values of an envelope. A broadcast has others, which count its parts from chunk on.
const (
	free uint32 = iota
	full
	arrived
	stored
	chunk
)

// semaphore is where the word of barriers is. The blocks are behind it.
const semaphore = 0

// envelope returns where the block of a pair begins. Its data is behind.
func (r *rank) envelope(sender, receiver int) int {
	at := receiver*(r.ranks-1) + sender
	if sender > receiver {
		at--
	}
	return semaphore + 1 + at*r.m.block
}

func (r *rank) compute(cycles sim.Cycle) bool { return r.yield(action{cycles: cycles}) }

// until reads a word until it has a value.
func (r *rank) until(at int, value uint32) bool {
	for got := value + 1; got != value; {
		if !r.yield(action{r.m.costs.Word, func() { got = r.m.memory[at] }}) {
			return false
		}
	}
	return true
}

func (r *rank) set(at int, value uint32) bool {
	return r.yield(action{r.m.costs.Word, func() { r.m.memory[at] = value }})
}

// move reads or writes the data of a block.
func (r *rank) move(words int) bool {
	for range words {
		if !r.yield(action{r.m.costs.Word, func() {}}) {
			return false
		}
	}
	return true
}

// parts calls f for the parts of words that a block has room for.
func (r *rank) parts(words int, f func(words int) bool) bool {
	for ; words > 0; words -= r.m.block - 1 {
		if !f(min(words, r.m.block-1)) {
			return false
		}
	}
	return true
}

func (r *rank) send(to, words int) bool {
	at := r.envelope(r.rank, to)
	return r.parts(words, func(words int) bool { return r.until(at, free) && r.move(words) && r.set(at, full) })
}

func (r *rank) recv(from, words int) bool {
	at := r.envelope(from, r.rank)
	return r.parts(words, func(words int) bool { return r.until(at, full) && r.move(words) && r.set(at, free) })
}

// barrier is that of figure 6: processor 0 reads the envelopes of all, and toggles the semaphore.
func (r *rank) barrier() bool {
	r.barriers++
	if r.rank != 0 {
		at := r.envelope(r.rank, 0)
		return r.until(at, free) && r.set(at, arrived) && r.until(semaphore, r.barriers)
	}
	for other := 1; other < r.ranks; other++ {
		at := r.envelope(other, 0)
		if !(r.until(at, arrived) && r.set(at, free)) {
			return false
		}
	}
	return r.set(semaphore, r.barriers)
}

// bcast synchronises all, and has processor 0 write the data into a block once, which all others
// read.
func (r *rank) bcast(words int) bool {
	if r.ranks == 1 {
		return true
	}
	if !r.barrier() {
		return false
	}
	at, part := r.envelope(0, 1), chunk
	return r.parts(words, func(words int) bool {
		part++
		if r.rank != 0 {
			return r.until(at, part) && r.move(words) && r.set(r.envelope(r.rank, 0), stored)
		}
		if !(r.move(words) && r.set(at, part)) {
			return false
		}
		for other := 1; other < r.ranks; other++ {
			from := r.envelope(other, 0)
			if !(r.until(from, stored) && r.set(from, free)) {
				return false
			}
		}
		return true
	}) && (r.rank != 0 || r.set(at, free))
}

// gather has all send their part of words to processor 0, by the engine's schedule. A processor
// does one thing at a time.
func (r *rank) gather(words int) bool {
	sizes := make([]int, r.ranks)
	for i := range sizes {
		sizes[i] = wordBytes * share(words, i, r.ranks)
	}
	var s coll.Schedule
	c := coll.Call{Collective: coll.Gather, Rank: r.rank, Ranks: r.ranks, Bytes: sizes[r.rank], Vector: true, Recv: coll.Layout{Sizes: sizes}}
	flat, err := coll.Find(coll.Gather, "flat")
	if err != nil || flat.Make(&s, &c) != nil {
		return false // which Run reports
	}
	for step, ok := s.Next(); ok; step, ok = s.Next() {
		switch words := step.Len / wordBytes; {
		case step.Kind == coll.StepSend && !r.send(step.Peer, words), step.Kind == coll.StepRecv && !r.recv(step.Peer, words):
			return false
		}
	}
	return true
}

// share returns how many of n things processor r has that are dealt in turn.
func share(n, r, ranks int) int { return (n - r + ranks - 1) / ranks }
