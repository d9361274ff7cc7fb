package shm

import (
	"sync"
	"time"
)

// A processor needs about ten times as long to read data written by another processor if they share no cache, and the
// host of a virtual machine may move its processors at any time. Long payload sent through the ring moves between
// processors twice, but both sides copy at the same time; a single copy by the kernel moves it once. The ring is
// therefore faster between near processors, and the single copy between far ones. The sender distinguishes near from
// far by the duration of a copy into the ring.

const (
	// minTimedLen is the minimum payload length in bytes for which the time of a copy into the ring is
	// significant.
	minTimedLen = 16 << 10
	// timingInterval is the number of copies to a near peer per timed copy. Timing every copy would read the clock
	// twice each time.
	timingInterval = 8
	// farCost is the cost above which the peer counts as far. The cost is the time of a copy into the ring,
	// relative to a copy within the process. In measurements it was 20 to 32 between far processors and 1 to 5
	// between near ones; at 6, both ways are equally fast. nearCost is the cost below which a far peer counts
	// as near again.
	farCost, nearCost = 8, 6
	// decisionCopies is the number of copies needed to change the decision, so that one interrupted copy cannot change
	// it.
	decisionCopies = 16
	// exposedPerTrial is the number of long payloads sent by single copy before the ring is tried again. The first
	// warmupCopies copies of that trial are ignored, because the lines of the ring are not in any cache yet.
	exposedPerTrial, warmupCopies = 1024, 64
)

// distance decides whether long payload to a peer goes through the ring or by single copy.
type distance struct {
	// localTime is the duration of a copy of minTimedLen bytes within the process.
	localTime time.Duration
	// isFar is set if long payload is sent by single copy.
	isFar bool
	// score is the number of consecutive slow copies. During a trial of the ring, it is the number of fast copies minus
	// the number of slow ones.
	score int
	// copyCount counts the copies into the ring; for a far peer, only the copies since the last trial began.
	// exposedCount counts the single copies since then.
	copyCount, exposedCount int
}

// isExposing reports whether long payload is currently sent by single copy.
func (d *distance) isExposing() bool { return d.isFar && d.exposedCount < exposedPerTrial }

// nextExposed reports whether to send the next payload by single copy, and counts the payload if so.
func (d *distance) nextExposed() bool {
	if !d.isExposing() {
		return false
	}
	d.exposedCount++
	return true
}

// shouldTime reports whether to time the next copy into the ring. bytes is the length of that copy.
func (d *distance) shouldTime(bytes int) bool {
	if bytes < minTimedLen {
		return false
	}
	d.copyCount++
	return d.isFar || d.score > 0 || d.copyCount%timingInterval == 0
}

// recordCopy updates the decision with the duration of a copy into the ring.
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

// localCopyTime returns the duration of a copy of minTimedLen bytes within the process, from cache to cache.
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
