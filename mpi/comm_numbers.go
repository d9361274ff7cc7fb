package mpi

import (
	"math"
	"math/rand/v2"
	"sync"
)

// Communicator numbers.
const (
	worldNumber = 0
	// numberStep is the distance between consecutive numbers. The library's own messages use the numbers in between.
	numberStep = 4
	// internalFlag is set in the communicator number of messages that the library sends for its own purposes between
	// the members of a communicator.
	internalFlag = 1
	// noNumber is the proposal of a rank that rejects the call or has no numbers left.
	noNumber = math.MaxUint32
	// firstUnique is the lowest number that proposeUnique returns. Such numbers need no claim.
	firstUnique = 1 << 31
)

// numbers assigns numbers to a rank's communicators. The numbers are multiples of numberStep, and each is used only
// once. The members of a new communicator agree on the highest of their proposals, which is greater than every number
// that any of them has used. Several agreements in progress may arrive at the same number; a member that takes part in
// two of them then rejects the second.
type numbers struct {
	mu sync.Mutex
	// highest is the highest number used or proposed.
	highest uint32
	// inProgress is the number of agreements in progress. claimed holds the numbers that have been claimed since
	// inProgress was last 0.
	inProgress int
	claimed    map[uint32]struct{}
	// uniqueProposals is the number of proposals made by proposeUnique.
	uniqueProposals uint64
}

// begin marks the beginning of an agreement.
func (n *numbers) begin() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.inProgress++
}

// end marks the end of an agreement.
func (n *numbers) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.inProgress--
	if n.inProgress == 0 {
		clear(n.claimed) // all of them are below any future proposal
	}
}

// propose returns a number that this rank has not used, or noNumber. After a failed attempt, it skips a random number
// of values, so that agreements on the same number are unlikely to collide again.
func (n *numbers) propose(attempt int) uint32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	step := uint64(1)
	if attempt > 0 {
		step += rand.Uint64N(1 << min(attempt, 10))
	}
	step *= numberStep
	next := uint64(n.highest) + step
	if next >= firstUnique {
		return noNumber
	}
	n.highest = uint32(next)
	return n.highest
}

// proposeUnique returns a number that no rank in a world of this size ever proposes again, or noNumber.
func (n *numbers) proposeUnique(rank, size int) uint32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	next := firstUnique + numberStep*(n.uniqueProposals*uint64(size)+uint64(rank))
	if next > noNumber-numberStep-3 { // devices use the highest numbers
		return noNumber
	}
	n.uniqueProposals++
	return uint32(next)
}

// claim marks an agreed number as used. It returns false if another agreement has claimed it.
func (n *numbers) claim(number uint32) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.highest = max(n.highest, number)
	if _, taken := n.claimed[number]; taken {
		return false
	}
	if n.claimed == nil {
		n.claimed = make(map[uint32]struct{})
	}
	n.claimed[number] = struct{}{}
	return true
}
