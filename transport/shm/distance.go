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
	// minTimedLen is the minimum payload length in bytes for which the time of a copy into the ring is
	// significant.
	minTimedLen = 16 << 10
	// timingInterval is the number of copies to a near peer for each copy that is timed. Not every copy is timed,
	// because that reads the clock twice.
	timingInterval = 8
	// farCost is the cost above which the peer counts as far. The cost is the time of a copy into the ring,
	// relative to a copy within the process. In measurements it was 20 to 32 between far processors and 1 to 5
	// between near ones; at 6, both ways are equally fast. nearCost is the cost below which a far peer counts
	// as near again.
	farCost, nearCost = 8, 6
	// decisionCopies is the number of copies that it takes to change the decision, so that one interrupted copy does
	// not change it.
	decisionCopies = 16
	// exposedPerTrial is the number of long payloads sent by single copy before the ring is tried again. The first
	// warmupCopies copies of that trial are ignored, because the lines of the ring are not in any cache yet.
	exposedPerTrial, warmupCopies = 1024, 64
)

// distance decides whether long payload to a peer goes through the ring or by single copy.
type distance struct {
	// localTime is the time of a copy of minTimedLen bytes within the process.
	localTime time.Duration
	// isFar is set if long payload goes by single copy.
	isFar bool
	// score is the number of consecutive slow copies. While the ring is tried again, it is the number of fast
	// copies minus the number of other copies.
	score int
	// copyCount counts the copies into the ring; for a far peer, only the copies since the last trial began.
	// exposedCount counts the single copies since then.
	copyCount, exposedCount int
}

// isExposing reports whether long payload currently goes by single copy.
func (d *distance) isExposing() bool { return d.isFar && d.exposedCount < exposedPerTrial }

// nextExposed reports whether the next payload goes by single copy, and counts it.
func (d *distance) nextExposed() bool {
	if !d.isExposing() {
		return false
	}
	d.exposedCount++
	return true
}

// shouldTime reports whether to time the next copy into the ring, which has the given length in bytes.
func (d *distance) shouldTime(bytes int) bool {
	if bytes < minTimedLen {
		return false
	}
	d.copyCount++
	return d.isFar || d.score > 0 || d.copyCount%timingInterval == 0
}

// recordCopy records the time of a copy into the ring.
func (d *distance) recordCopy(bytes int, took time.Duration) {
	cost := took * minTimedLen / time.Duration(bytes)
	switch {
	case !d.isFar && cost <= farCost*d.localTime:
		d.score = 0
	case !d.isFar:
		if d.score++; d.score == decisionCopies {
			d.setFar(true)
		}
	case d.copyCount <= warmupCopies:
	default:
		if cost < nearCost*d.localTime {
			d.score++
		} else {
			d.score--
		}
		if d.copyCount >= warmupCopies+decisionCopies {
			d.setFar(d.score <= 0)
		}
	}
}

// setFar sets isFar, and restarts all counts.
func (d *distance) setFar(far bool) { *d = distance{localTime: d.localTime, isFar: far} }

// localCopyTime returns the time of a copy of minTimedLen bytes within the process, from cache to cache.
var localCopyTime = sync.OnceValue(func() time.Duration {
	const tries = 16
	from, to := make([]byte, minTimedLen), make([]byte, minTimedLen)
	least := time.Hour
	for range tries {
		began := time.Now()
		copy(to, from)
		least = min(least, time.Since(began))
	}
	return max(least, 1)
})
