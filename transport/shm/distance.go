package shm

import (
	"sync"
	"time"
)

// What one processor has written takes another one some ten times as long to get if the two have no cache in common, and the host
// of a virtual machine may move its processors at any time. Through the ring, long payload moves between processors
// twice, but both sides copy at once; a single copy by the kernel moves it once. So the ring is
// faster on near processors, and the single copy on far ones. Which they are, the sender sees by what it takes to copy into the ring.

const (
	// minTimed is from how many bytes of payload on the time of a copy into the ring says something.
	minTimed = 16 << 10
	// timedEvery is of how many such copies to a near peer one is timed, as that takes two readings of the clock.
	timedEvery = 8
	// farCost is how many times as long as a copy within the process such a copy takes at least on far processors: 20 to 32 times were measured,
	// 1 to 5 on near ones, and 6 is where both ways take the same. nearCost is how long it takes at most when it is back.
	farCost, nearCost = 8, 6
	// enough copies decide, so that one that was interrupted does not.
	enough = 16
	// exposures is how many long payloads go by single copies until the ring is tried again. The first lap of copies
	// then does not count: the ring's lines are in no cache.
	exposures, lap = 1024, 64
)

// distance decides by which way long payload goes to a peer.
type distance struct {
	// local is what a copy of minTimed bytes within the process takes.
	local time.Duration
	// far: by single copies.
	far bool
	// score is how many copies have been too slow one after another, or, in a trial of the ring, by how many more were fast than not.
	score int
	// copies counts those into the ring, since the last trial began if the peer is far, and exposed the single copies since then.
	copies, exposed int
}

// exposing reports whether long payload goes by single copies for now.
func (d *distance) exposing() bool { return d.far && d.exposed < exposures }

// expose is exposing for the next payload.
func (d *distance) expose() bool {
	if !d.exposing() {
		return false
	}
	d.exposed++
	return true
}

// times reports whether the next copy into the ring, of so many bytes, is to be timed.
func (d *distance) times(bytes int) bool {
	if bytes < minTimed {
		return false
	}
	d.copies++
	return d.far || d.score > 0 || d.copies%timedEvery == 0
}

// copied notes what a copy into the ring took.
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

// change ends a decision or a trial.
func (d *distance) change(far bool) { *d = distance{local: d.local, far: far} }

// localCopy returns what a copy of minTimed bytes within the process takes, from cache to cache.
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
