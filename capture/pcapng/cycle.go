package pcapng

import "fmt"

// Cycle is the last clock cycle that the simulation of a rank's role had reported when the flight recorder recorded a
// packet of the rank. The file stores it as a comment on the packet.
type Cycle struct {
	Rank int
	// Simulation counts the starts of the simulator so far. Each start resets Cycle to 0.
	Simulation, Cycle uint64
}

// cycleFormat is part of the file format: ParseCycle reads comments with it.
const cycleFormat = "rank %d: cycle %d of simulation %d"

// String returns the text of the comment.
func (c Cycle) String() string { return fmt.Sprintf(cycleFormat, c.Rank, c.Cycle, c.Simulation) }

// ParseCycle parses a comment, and reports whether it is a Cycle.
func ParseCycle(comment string) (Cycle, bool) {
	var c Cycle
	_, err := fmt.Sscanf(comment, cycleFormat, &c.Rank, &c.Cycle, &c.Simulation)
	return c, err == nil && c.String() == comment && c.Rank >= 0
}
