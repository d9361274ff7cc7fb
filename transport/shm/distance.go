package shm

import (
	"sync"
	"time"
)

// A processor needs about ten times as long to read data written by another one if the two share no cache, and
// the host of a virtual machine may move its processors at any time. Through the ring, long payload moves
// between processors twice, but both sides copy at the same time; a single copy by the kernel moves it once. So
// the ring is faster on near processors, and the single copy on far ones. The sender distinguishes them by the
// time that a copy into the ring takes.

const (
	// minTimed is the payload length in bytes from which the time of a copy into the ring is significant.
	minTimed = 16 << 10
	// timedEvery is the number of copies to a near peer per timed copy, since timing reads the clock twice.
	timedEvery = 8
	// farCost is the cost of a copy into the ring, relative to a copy within the process, from which the peer
	// counts as far. It was 20 to 32 on far processors and 1 to 5 on near ones in measurements; at 6 both ways
	// are equally fast. nearCost is the cost below which a far peer counts as near again.
	farCost, nearCost = 8, 6
	// enough is the number of copies that decide, so that one interrupted copy does not.
	enough = 16
	// exposures is the number of long payloads sent by single copy before the ring is tried again. The first
	// lap of copies is ignored then: the ring's lines are in no cache.
	exposures, lap = 1024, 64
)

// distance decides how long payload goes to a peer.
type distance struct {
	// local is the time of a copy of minTimed bytes within the process.
	local time.Duration
	// far is set if long payload goes by single copies.
	far bool
	// score is the number of consecutive slow copies or, while the ring is tried, the number of fast copies
	// minus the others.
	score int
	// copies counts the copies into the ring, for a far peer since the last trial began, and exposed the single
	// copies since then.
	copies, exposed int
}

// exposing reports whether long payload currently goes by single copies.
func (d *distance) exposing() bool { return d.far && d.exposed < exposures }

// expose is exposing for the next payload, which it counts.
func (d *distance) expose() bool {
	if !d.exposing() {
		return false
	}
	d.exposed++
	return true
}

// times reports whether the next copy into the ring, of the given length, is to be timed.
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
