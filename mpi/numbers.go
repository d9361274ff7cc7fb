package mpi

import (
	"math"
	"math/rand/v2"
	"sync"
)

// Numbers of communicators.
const (
	worldNumber = 0
	// numberStep is the distance of two numbers. Those between are for messages of the library.
	numberStep = 4
	// internal is set in the number under which the library's own messages
	// between the members of a communicator travel.
	internal = 1
	// noNumber is proposed by a rank whose numbers are used up.
	noNumber = math.MaxUint32
	// firstAlone is the first of those that are used without a claim.
	firstAlone = 1 << 31
)

// numbers gives a rank's communicators their numbers: multiples of numberStep, each used
// once. The members of a new communicator agree on the highest that any of them
// proposes, which is higher than any that one of them has used before they began.
// While several agreements are under way, two of them may come to the same
// number; then a member that both have in common refuses it to the second.
type numbers struct {
	mu sync.Mutex
	// last is the highest number used or proposed.
	last uint32
	// underway counts agreements; claimed are the numbers that were claimed
	// while one was under way.
	underway int
	claimed  map[uint32]struct{}
	// alone counts proposals of proposeAlone.
	alone uint64
}

// begin and end enclose an agreement.
func (n *numbers) begin() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.underway++
}

func (n *numbers) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.underway--
	if n.underway == 0 {
		clear(n.claimed) // all of them are below what is proposed from now on
	}
}

// propose returns a number that this rank has not used, or noNumber. After an
// attempt that failed it skips some at random, so that agreements that conflict
// do not conflict again.
func (n *numbers) propose(attempt int) uint32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	step := uint64(1)
	if attempt > 0 {
		step += rand.Uint64N(1 << min(attempt, 10))
	}
	step *= numberStep
	next := uint64(n.last) + step
	if next >= firstAlone {
		return noNumber
	}
	n.last = uint32(next)
	return n.last
}

// proposeAlone returns a number that no rank of the world's size proposes again, or noNumber.
func (n *numbers) proposeAlone(rank, size int) uint32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	next := firstAlone + numberStep*(n.alone*uint64(size)+uint64(rank))
	if next > noNumber-numberStep-3 { // devices have the last ones
		return noNumber
	}
	n.alone++
	return uint32(next)
}

// claim takes a number that was agreed on. It reports false if another agreement
// has taken it.
func (n *numbers) claim(number uint32) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last = max(n.last, number)
	if _, taken := n.claimed[number]; taken {
		return false
	}
	if n.claimed == nil {
		n.claimed = make(map[uint32]struct{})
	}
	n.claimed[number] = struct{}{}
	return true
}
