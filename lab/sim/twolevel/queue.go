// Package twolevel models the hardware queue of Xiong, Skjellum, Herbordt, Accelerating MPI Message Matching Through
// FPGA Offload (2018): an associative memory (CAM) of 256 entries, backed by linked lists from which entries
// move up as slots become free. It has no wildcards.
package twolevel

import (
	"fmt"
	"slices"

	"github.com/zrlmpi/zrlmpid/lab/sim"
)

// Hardware parameters that the source states.
const (
	// CAMEntries is the number of entries in the first level, and ListEntries the number in all lists of the second level.
	CAMEntries  = 256
	ListEntries = 32768
	// Searching the CAM, inserting an entry, and moving an entry from a list to the CAM take one cycle each.
	// Searching a list takes three cycles per element.
	camCycles     sim.Cycle = 1
	insertCycles  sim.Cycle = 1
	moveCycles    sim.Cycle = 1
	elementCycles sim.Cycle = 3
)

// MaxLists is the maximum number of lists in a Queue.
const MaxLists = ListEntries

// Queue models a queue of posted receives or of unexpected messages, with their headers as keys.
type Queue struct {
	clock sim.Clock
	// commands holds the commands that have not begun yet.
	commands sim.FIFO[Command]
	outcomes []Outcome
	// cam holds the entries of the first level, oldest first.
	cam []uint64
	// lists are searched in parallel. They are filled and emptied round-robin.
	lists              [][]uint64
	numListed          int
	insertAt, moveFrom int
	// isMoving reports whether an entry is moving from a list to the CAM, and isBusy whether a command is in progress.
	// No move begins during a command, because an entry must not leave a list between the searches of the two levels.
	isMoving, isBusy bool
}

// Command is an operation on a queue. It appends an entry if Insert is set; otherwise it removes the entry with the
// given header.
type Command struct {
	Insert bool
	Header uint64
}

// Outcome is the result of a command: its duration, and whether it succeeded. OK is true if the command found its
// entry, or had space to insert it.
type Outcome struct {
	Cycles sim.Cycle
	OK     bool
}

// New returns an empty queue. It has 1 to MaxLists lists.
func New(lists int) (*Queue, error) {
	if lists < 1 || lists > MaxLists {
		return nil, fmt.Errorf("%d lists: must be 1 to %d", lists, MaxLists)
	}
	return &Queue{lists: make([][]uint64, lists)}, nil
}

// Events returns the number of simulated events.
func (q *Queue) Events() uint64 { return q.clock.Events() }

// Execute executes commands in order and returns their outcomes. Entries move to the CAM in parallel with the
// next command.
func (q *Queue) Execute(commands ...Command) []Outcome {
	q.outcomes = make([]Outcome, 0, len(commands))
	for _, c := range commands {
		q.commands.Push(c)
	}
	q.beginNext()
	q.clock.Run()
	return q.outcomes
}

// beginNext begins the next command.
func (q *Queue) beginNext() {
	if q.commands.Len() == 0 {
		return
	}
	command, began := q.commands.Pop(), q.clock.Now()
	q.isBusy = true
	end := func(ok bool) {
		q.outcomes = append(q.outcomes, Outcome{q.clock.Now() - began, ok})
		q.isBusy = false
		q.moveUp()
		q.beginNext()
	}
	if !command.Insert {
		q.clock.After(camCycles, func() { q.match(command.Header, end) })
		return
	}
	wait := insertCycles
	if q.isMoving { // the move uses the ports of the lists
		wait += moveCycles
	}
	q.clock.After(wait, func() { end(q.insert(command.Header)) })
}

func (q *Queue) insert(header uint64) bool {
	switch {
	case q.numListed == 0 && len(q.cam) < CAMEntries:
		q.cam = append(q.cam, header)
	case q.numListed < ListEntries:
		l := &q.lists[q.insertAt]
		*l = append(*l, header)
		q.insertAt = (q.insertAt + 1) % len(q.lists)
		q.numListed++
	default:
		return false
	}
	return true
}

// match completes a command after the associative memory (CAM) has been searched.
func (q *Queue) match(header uint64, end func(ok bool)) {
	if i := slices.Index(q.cam, header); i >= 0 {
		q.cam = slices.Delete(q.cam, i, i+1)
		end(true)
		return
	}
	list, steps := q.search(header)
	q.clock.After(sim.Cycle(steps)*elementCycles, func() {
		if list >= 0 {
			l := &q.lists[list]
			*l = slices.Delete(*l, steps-1, steps)
			q.numListed--
		}
		end(list >= 0)
	})
}

// search returns the list in which a parallel search finds the header first, and the number of elements compared in
// that list. If no list contains the header, it returns −1 and the length of the longest list.
func (q *Queue) search(header uint64) (list, steps int) {
	list = -1
	for i := range q.lists {
		i = (q.moveFrom + i) % len(q.lists) // start at the list that was filled first
		l := q.lists[i]
		if list >= 0 {
			l = l[:min(len(l), steps-1)] // all searches end when one of them succeeds
		}
		switch at := slices.Index(l, header); {
		case at >= 0:
			list, steps = i, at+1
		case list < 0:
			steps = max(steps, len(l))
		}
	}
	return list, steps
}

// moveUp moves entries from the lists to the CAM, one per cycle, until the CAM is full or a command
// begins.
func (q *Queue) moveUp() {
	if q.isMoving || q.isBusy || q.numListed == 0 || len(q.cam) == CAMEntries {
		return
	}
	q.isMoving = true
	q.clock.After(moveCycles, func() {
		for len(q.lists[q.moveFrom]) == 0 {
			q.moveFrom = (q.moveFrom + 1) % len(q.lists)
		}
		l := &q.lists[q.moveFrom]
		q.cam = append(q.cam, (*l)[0])
		*l = (*l)[1:]
		q.moveFrom = (q.moveFrom + 1) % len(q.lists)
		q.numListed--
		q.isMoving = false
		q.moveUp()
	})
}
