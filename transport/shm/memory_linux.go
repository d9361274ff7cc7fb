package shm

// The memory of a link consists of a page with the heads of its rings, the two rings, and for each direction a
// page of slots for the advertised buffers. The parts that the lower rank reads come first. A doorbell is a
// page.
const (
	pageLen = 4096
	// lowHead and highHead are the offsets of the heads. They are on cache lines that no processor prefetches
	// together.
	lowHead, highHead = 0, 256
	// lowFar and highFar are the offsets of two words. Each is 1 while the lower or the higher rank,
	// respectively, sends long payload by single copy. Versions without this feature leave them 0.
	lowFar, highFar = 512, 768
	doorbellLen     = pageLen
)

func linkLen(ring int) int { return slotsOffset(ring) + 2*slotsLen }

// slotsOffset returns the offset of the slots.
func slotsOffset(ring int) int { return pageLen + 2*ring }
