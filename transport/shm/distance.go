package shm

import (
	"sync"
	"time"
)

// A processor needs about ten times as long to read data written by another processor if they share no cache,
// and the host of a virtual machine may move its processors at any time. Long payload sent through the ring
// moves between processors twice, but both sides copy at the same time; a single copy by the kernel moves it
// once. The ring is therefore faster between near processors, and the single copy between far ones. The sender
// distinguishes them by the time that a copy into the ring takes.

const (
	// minTimed is the minimum payload length in bytes for which the time of a copy into the ring is
	// significant.
	minTimed = 16 << 10
	// timedEvery is the number of copies to a near peer for each copy that is timed. Not every copy is timed,
	// because that reads the clock twice.
	timedEvery = 8
	// farCost is the cost above which the peer counts as far. The cost is the time of a copy into the ring,
	// relative to a copy within the process. In measurements it was 20 to 32 between far processors and 1 to 5
	// between near ones; at 6, both ways are equally fast. nearCost is the cost below which a far peer counts
	// as near again.
	farCost, nearCost = 8, 6
	// enough is the number of copies that it takes to change the decision, so that one interrupted copy does
	// not change it.
	enough = 16
	// exposures is the number of long payloads sent by single copy before the ring is tried again. The first
	// lap copies of that trial are ignored, because the lines of the ring are not in any cache yet.
	exposures, lap = 1024, 64
)

// distance decides whether long payload to a peer goes through the ring or by single copy.
type distance struct {
	// local is the time of a copy of minTimed bytes within the process.
	local time.Duration
	// far is set if long payload goes by single copy.
	far bool
	// score is the number of consecutive slow copies. While the ring is tried again, it is the number of fast
	// copies minus the number of other copies.
	score int
	// copies counts the copies into the ring; for a far peer, only those since the last trial began. exposed
	// counts the single copies since then.
	copies, exposed int
}

// exposing reports whether long payload currently goes by single copy.
func (d *distance) exposing() bool { return d.far && d.exposed < exposures }

// expose reports whether the next payload goes by single copy, and counts it.
func (d *distance) expose() bool {
	if !d.exposing() {
		return false
	}
	d.exposed++
	return true
}

// times reports whether to time the next copy into the ring, which has the given length in bytes.
func (d *distance) times(bytes int) bool {
	if bytes < minTimed {
		return false
	}
	d.copies++
	return d.far || d.score > 0 || d.copies%timedEvery == 0
}

// copied records the time of a copy into the ring.
func (d *distance) copied(bytes int, took time.Duration) {
	cost := took * minTimed / time.Duration(bytes)
	switch {
	case !d.far && cost <= farCost*d.local:
		d.score = 0
	case !d.far:
		if d.score++; d.score == enough {
			d.change(true)
		}
	case d.copies <= lap:
	default:
		if cost < nearCost*d.local {
			d.score++
		} else {
			d.score--
		}
		if d.copies >= lap+enough {
			d.change(d.score <= 0)
		}
	}
}

// change sets far, and restarts all counts.
func (d *distance) change(far bool) { *d = distance{local: d.local, far: far} }

// localCopy returns the time of a copy of minTimed bytes within the process, from cache to cache.
var localCopy = sync.OnceValue(func() time.Duration {
	const tries = 16
	from, to := make([]byte, minTimed), make([]byte, minTimed)
	least := time.Hour
	for range tries {
		began := time.Now()
		copy(to, from)
		least = min(least, time.Since(began))
	}
	return max(least, 1)
})
