package pcapng

import "fmt"

// Cycle is the last cycle that the simulation of a rank's role had reported when the flight recorder recorded a packet
// of the rank. A file has it as a comment of the packet.
type Cycle struct {
	Rank int
	// Simulation is how often the simulator had been started: each start begins with cycle 0.
	Simulation, Cycle uint64
}

const cycleFormat = "rank %d: cycle %d of simulation %d"

// String returns the comment.
func (c Cycle) String() string { return fmt.Sprintf(cycleFormat, c.Rank, c.Cycle, c.Simulation) }

// ParseCycle reads a comment, and reports whether it is one of a cycle.
func ParseCycle(comment string) (Cycle, bool) {
	var c Cycle
	_, err := fmt.Sscanf(comment, cycleFormat, &c.Rank, &c.Cycle, &c.Simulation)
	return c, err == nil && c.String() == comment && c.Rank >= 0
}
