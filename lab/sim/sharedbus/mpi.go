package sharedbus

import (
	"github.com/zrlmpi/zrlmpid/lab/sim"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// rank is the library's state on one processor. Its methods return false if the program must stop.
type rank struct {
	machine     *machine
	rank, ranks int
	yield       func(action) bool
	// publications is the number of publications by this processor, and callStart its value at the start of the
	// collective call. At the end of a call, all processors have made the same number of publications.
	publications, callStart uint32
}

// Values that an envelope in memory can have. Values greater than publicationBase contain the number of a publication.
const (
	envelopeFree uint32 = iota
	envelopeFull
	publicationBase
)

// barrierAddr is the address at which processor 0 publishes that all processors have reached a barrier. The blocks for
// pairs of processors follow it in memory.
const barrierAddr = 0

// envelopeAddr returns the address of the block for a sender and a receiver. A block begins with its envelope, which is
// followed by data.
func (r *rank) envelopeAddr(sender, receiver int) int {
	at := receiver*(r.ranks-1) + sender
	if sender > receiver {
		at--
	}
	return barrierAddr + 1 + at*r.machine.block
}

// publishAddr returns the address at which the processor with number by makes its publications.
func (r *rank) publishAddr(by int) int {
	if by == 0 {
		return r.envelopeAddr(0, 1)
	}
	return r.envelopeAddr(by, 0)
}

func (r *rank) compute(cycles sim.Cycle) bool { return r.yield(action{cycles: cycles}) }

// pollUntil polls an envelope until the function right returns true for its value. It then processes the envelope.
func (r *rank) pollUntil(at int, right func(value uint32) bool) bool {
	for found := false; !found; {
		if !r.yield(action{r.machine.costs.Word, func() { found = right(r.machine.memory[at]) }}) {
			return false
		}
	}
	return r.compute(r.machine.costs.Envelope)
}

// writeEnvelope prepares an envelope and writes it.
func (r *rank) writeEnvelope(at int, value uint32) bool {
	return r.compute(r.machine.costs.Envelope) &&
		r.yield(action{r.machine.costs.Word, func() { r.machine.memory[at] = value }})
}

// moveWords models the accesses that read or write the given number of words in a block.
func (r *rank) moveWords(words int) bool {
	for range words {
		if !r.yield(action{r.machine.costs.Word, func() {}}) {
			return false
		}
	}
	return true
}

// eachPart divides the given number of words into parts that fit into a block, and calls f for each part.
func (r *rank) eachPart(words int, f func(words int) bool) bool {
	for ; words > 0; words -= r.machine.block - 1 {
		if !f(min(words, r.machine.block-1)) {
			return false
		}
	}
	return true
}

func (r *rank) send(to, words int) bool {
	at := r.envelopeAddr(r.rank, to)
	return r.eachPart(words, func(words int) bool {
		return r.pollUntil(at, func(value uint32) bool { return value != envelopeFull }) && r.moveWords(words) &&
			r.writeEnvelope(at, envelopeFull)
	})
}

func (r *rank) recv(from, words int) bool {
	at := r.envelopeAddr(from, r.rank)
	return r.eachPart(words, func(words int) bool {
		return r.pollUntil(at, func(value uint32) bool { return value == envelopeFull }) && r.moveWords(words) &&
			r.writeEnvelope(at, envelopeFree)
	})
}

func (r *rank) publish(at int) bool {
	r.publications++
	return r.writeEnvelope(at, publicationBase+r.publications)
}

// awaitCount waits until a processor has made count publications in this call. A message in the same envelope also ends
// the wait, because it was sent after these publications.
func (r *rank) awaitCount(at int, count uint32) bool {
	return r.pollUntil(at, func(value uint32) bool {
		return value == envelopeFull ||
			value >= publicationBase+r.callStart+count
	})
}

// awaitAll makes processor 0 wait for count publications by every other processor.
func (r *rank) awaitAll(count uint32) bool {
	for other := 1; count > 0 && other < r.ranks; other++ {
		if !r.awaitCount(r.publishAddr(other), count) {
			return false
		}
	}
	return true
}

// collective executes a collective call step by step, following the schedule that the engine uses for it.
func (r *rank) collective(of coll.Collective, name string, c coll.Call) bool {
	var schedule coll.Schedule
	c.Collective, c.Rank, c.Ranks = of, r.rank, r.ranks
	algorithm, err := coll.Find(of, name)
	if err != nil || algorithm.Make(&schedule, &c) != nil {
		return false // Run reports the error
	}
	r.callStart = r.publications
	for step, ok := schedule.Next(); ok; step, ok = schedule.Next() {
		if !r.execute(step) {
			return false
		}
	}
	return true
}

// execute executes a step. A message without data is a publication. If a schedule sends such a message to all other
// processors, processor 0 makes a single publication, when the schedule sends to processor 1.
func (r *rank) execute(step *coll.Step) bool {
	words := step.Len / wordBytes
	switch token := step.From.Buf == coll.Blank || step.Into.Buf == coll.Blank; step.Kind {
	case coll.StepSend:
		switch {
		case !token:
			return r.send(step.Peer, words)
		case r.rank != 0:
			return r.publish(r.publishAddr(r.rank))
		case step.Peer == 1:
			return r.publish(barrierAddr)
		}
	case coll.StepRecv:
		switch {
		case !token:
			return r.recv(step.Peer, words)
		case r.rank != 0:
			return r.awaitCount(barrierAddr, 1)
		}
		return r.awaitCount(r.publishAddr(step.Peer), 1)
	case coll.StepCopy:
		if step.From.Buf == coll.Shared || step.Into.Buf == coll.Shared {
			return r.moveWords(words)
		}
	case coll.StepPublish:
		return r.publish(r.publishAddr(r.rank))
	case coll.StepAwait:
		if step.Peer == coll.AllRanks {
			return r.awaitAll(uint32(step.Count))
		}
		return r.awaitCount(r.publishAddr(step.Peer), uint32(step.Count))
	}
	return true
}

// bcast synchronizes all processors. Processor 0 then writes the data into a block, part by part, and all other
// processors read each part there. Like the engine's executor, processor 0 waits until all of them have read the last
// part.
func (r *rank) bcast(words int) bool {
	if r.ranks == 1 {
		return true
	}
	room := wordBytes * (r.machine.block - 1)
	c := coll.Call{Bytes: wordBytes * words, Elem: wordBytes, Segment: room, Shared: room}
	switch {
	case !r.collective(coll.Barrier, "toggle", coll.Call{}) || !r.collective(coll.Bcast, "shared", c):
		return false
	case r.rank != 0:
		return r.publish(r.publishAddr(r.rank))
	}
	return r.awaitAll(r.publications - r.callStart)
}

// gather collects the shares of all processors on processor 0.
func (r *rank) gather(words int) bool {
	sizes := make([]int, r.ranks)
	for i := range sizes {
		sizes[i] = wordBytes * share(words, i, r.ranks)
	}
	return r.collective(coll.Gather, "flat",
		coll.Call{Bytes: sizes[r.rank], Vector: true, Recv: coll.Layout{Sizes: sizes}})
}

// share returns the number of items that processor r gets if n items are dealt round-robin.
func share(n, r, ranks int) int { return (n - r + ranks - 1) / ranks }
