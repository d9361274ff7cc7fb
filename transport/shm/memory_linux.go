package shm

// The memory of a link is a page with the heads of its rings, the two rings, and a page of
// slots for the advertised buffers in each: first what the lower rank reads. A doorbell is a page.
const (
	pageLen = 4096
	// lowHead and highHead are the places of the heads, on cache lines that no
	// processor fetches together.
	lowHead, highHead = 0, 256
	// lowFar and highFar are those of words that are 1 while the lower or the higher rank sends long payload by single copies. Versions
	// that know nothing of that have 0.
	lowFar, highFar = 512, 768
	doorbellLen     = pageLen
)

func linkLen(ring int) int { return slotsAt(ring) + 2*slotsLen }

// slotsAt is the place of the slots.
func slotsAt(ring int) int { return pageLen + 2*ring }
