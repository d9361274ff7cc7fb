package shm

// The memory of a link consists of a page with the heads of its rings, the two rings, and for each direction a page of
// slots for the advertised buffers. The parts read by the lower rank precede those read by the higher one. A doorbell
// is a page.
const (
	pageLen = 4096
	// lowHead and highHead are the offsets of the heads, on cache lines that no processor prefetches together.
	lowHead, highHead = 0, 256
	// lowFar and highFar are the offsets of two words. A word is 1 while its rank, the lower or the higher one, sends
	// long payload by single copy. Versions without this feature leave both 0.
	lowFar, highFar = 512, 768
	doorbellLen     = pageLen
)

func linkLen(ring int) int { return slotsOffset(ring) + 2*slotsLen }

// slotsOffset returns the offset of the slots.
func slotsOffset(ring int) int { return pageLen + 2*ring }
