package sharedbus

import (
	"github.com/zrlmpi/zrlmpid/lab/sim"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// rank is a processor's end of the library. Its calls return false when the program is not to go on.
type rank struct {
	m           *machine
	rank, ranks int
	yield       func(action) bool
	// made counts the processor's publications, and before those before the collective call. At its
	// end all processors have made as many.
	made, before uint32
}

// The values of an envelope: those of messages, and behind them the numbers of publications.
const (
	free uint32 = iota
	full
	publication
)

// semaphore is where processor 0 publishes that all have arrived at a barrier. The blocks are behind it.
const semaphore = 0

// envelope returns where the block of a pair begins. Its data is behind.
func (r *rank) envelope(sender, receiver int) int {
	at := receiver*(r.ranks-1) + sender
	if sender > receiver {
		at--
	}
	return semaphore + 1 + at*r.m.block
}

// published returns the envelope in which a processor publishes.
func (r *rank) published(by int) int {
	if by == 0 {
		return r.envelope(0, 1)
	}
	return r.envelope(by, 0)
}

func (r *rank) compute(cycles sim.Cycle) bool { return r.yield(action{cycles: cycles}) }

// until reads an envelope until its value is right, and handles it.
func (r *rank) until(at int, right func(value uint32) bool) bool {
	for found := false; !found; {
		if !r.yield(action{r.m.costs.Word, func() { found = right(r.m.memory[at]) }}) {
			return false
		}
	}
	return r.compute(r.m.costs.Envelope)
}

// set makes an envelope and writes it.
func (r *rank) set(at int, value uint32) bool {
	return r.compute(r.m.costs.Envelope) && r.yield(action{r.m.costs.Word, func() { r.m.memory[at] = value }})
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
	return r.parts(words, func(words int) bool {
		return r.until(at, func(value uint32) bool { return value != full }) && r.move(words) && r.set(at, full)
	})
}

func (r *rank) recv(from, words int) bool {
	at := r.envelope(from, r.rank)
	return r.parts(words, func(words int) bool {
		return r.until(at, func(value uint32) bool { return value == full }) && r.move(words) && r.set(at, free)
	})
}

func (r *rank) publish(at int) bool {
	r.made++
	return r.set(at, publication+r.made)
}

// await waits until there have been so many publications in this call. A message in the same envelope
// was sent behind them: those before have been received.
func (r *rank) await(at int, count uint32) bool {
	return r.until(at, func(value uint32) bool { return value == full || value >= publication+r.before+count })
}

// awaitAll has processor 0 wait so for each of the others.
func (r *rank) awaitAll(count uint32) bool {
	for other := 1; count > 0 && other < r.ranks; other++ {
		if !r.await(r.published(other), count) {
			return false
		}
	}
	return true
}

// collective executes a call of all by a schedule of the engine, one step after another.
func (r *rank) collective(of coll.Collective, name string, c coll.Call) bool {
	var s coll.Schedule
	c.Collective, c.Rank, c.Ranks = of, r.rank, r.ranks
	algorithm, err := coll.Find(of, name)
	if err != nil || algorithm.Make(&s, &c) != nil {
		return false // which Run reports
	}
	r.before = r.made
	for step, ok := s.Next(); ok; step, ok = s.Next() {
		if !r.do(step) {
			return false
		}
	}
	return true
}

// do executes a step. A message without content is a publication, and one of processor 0 is the same
// for all: that to the first.
func (r *rank) do(step *coll.Step) bool {
	words := step.Len / wordBytes
	switch token := step.From.Buf == coll.Blank || step.Into.Buf == coll.Blank; step.Kind {
	case coll.StepSend:
		switch {
		case !token:
			return r.send(step.Peer, words)
		case r.rank != 0:
			return r.publish(r.published(r.rank))
		case step.Peer == 1:
			return r.publish(semaphore)
		}
	case coll.StepRecv:
		switch {
		case !token:
			return r.recv(step.Peer, words)
		case r.rank != 0:
			return r.await(semaphore, 1)
		}
		return r.await(r.published(step.Peer), 1)
	case coll.StepCopy:
		if step.From.Buf == coll.Shared || step.Into.Buf == coll.Shared {
			return r.move(words)
		}
	case coll.StepPublish:
		return r.publish(r.published(r.rank))
	case coll.StepAwait:
		if step.Peer == coll.Everyone {
			return r.awaitAll(uint32(step.Count))
		}
		return r.await(r.published(step.Peer), uint32(step.Count))
	}
	return true
}

// bcast synchronises all, and has processor 0 write the data into a block once, part by part, which all
// others read. As the engine's executor does, it has processor 0 wait until all have read the last part.
func (r *rank) bcast(words int) bool {
	if r.ranks == 1 {
		return true
	}
	room := wordBytes * (r.m.block - 1)
	c := coll.Call{Bytes: wordBytes * words, Elem: wordBytes, Segment: room, Shared: room}
	switch {
	case !r.collective(coll.Barrier, "toggle", coll.Call{}) || !r.collective(coll.Bcast, "shared", c):
		return false
	case r.rank != 0:
		return r.publish(r.published(r.rank))
	}
	return r.awaitAll(r.made - r.before)
}

// gather has all send their part of words to processor 0.
func (r *rank) gather(words int) bool {
	sizes := make([]int, r.ranks)
	for i := range sizes {
		sizes[i] = wordBytes * share(words, i, r.ranks)
	}
	return r.collective(coll.Gather, "flat", coll.Call{Bytes: sizes[r.rank], Vector: true, Recv: coll.Layout{Sizes: sizes}})
}

// share returns how many of n things processor r has that are dealt in turn.
func share(n, r, ranks int) int { return (n - r + ranks - 1) / ranks }
