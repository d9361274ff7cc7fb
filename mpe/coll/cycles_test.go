package coll

// The cycle model of the source of bcastAtomic: a crossbar on which a hop takes a
// cycle and carries a word of 4 bytes. The numbers below reproduce its table 2.
const (
	cycleWord = 4
	// Request and answer take a cycle for each rank and a few for the engine.
	cyclesFixed   = 4
	cyclesPerRank = 2
)

// AtomicCycles is how many cycles an atomic pipelined broadcast takes in the chain
// given by order, of bytes bytes, when left[r] bytes are still to be sent by rank r. If
// the order cannot change, as in the source's older form, it begins when all ranks are
// free. If it can, a rank is first needed when the data comes to it: one cycle later
// for each rank before it but the root.
//
//	wait + 2·ranks + 4 + words
func AtomicCycles(order []int, left []int, bytes int, changes bool) int {
	wait := 0
	for position, r := range order {
		if position == 0 || r < 0 || r >= len(left) {
			continue
		}
		busy := cycleWords(left[r])
		if changes {
			busy -= position - 1
		}
		wait = max(wait, busy)
	}
	return wait + cyclesPerRank*len(order) + cyclesFixed + cycleWords(bytes)
}

// cycleWords is how many cycles the bytes take on one hop.
func cycleWords(bytes int) int { return (max(bytes, 0) + cycleWord - 1) / cycleWord }
