package pcapng

import "fmt"

// Cycle is the last cycle reported by the simulation of a rank's role when the flight recorder recorded a packet of the
// rank. It is stored as a comment of the packet.
type Cycle struct {
	Rank int
	// Simulation is the number of starts of the simulator so far: each start begins with cycle 0.
	Simulation, Cycle uint64
}

const cycleFormat = "rank %d: cycle %d of simulation %d"

// String returns the text of the comment.
func (c Cycle) String() string { return fmt.Sprintf(cycleFormat, c.Rank, c.Cycle, c.Simulation) }

// ParseCycle parses a comment, and reports whether it is a Cycle.
func ParseCycle(comment string) (Cycle, bool) {
	var c Cycle
	_, err := fmt.Sscanf(comment, cycleFormat, &c.Rank, &c.Cycle, &c.Simulation)
	return c, err == nil && c.String() == comment && c.Rank >= 0
}
