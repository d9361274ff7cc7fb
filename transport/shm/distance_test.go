package shm

import (
	"testing"
	"time"
)

// ring simulates copies into the ring whose cost is relative to a copy within the process.
func (d *distance) ring(t *testing.T, copies int, cost float64) {
	t.Helper()
	for range copies {
		if d.shouldTime(2 * minTimedLen) {
			d.recordCopy(2*minTimedLen, time.Duration(cost*float64(2*d.localTime)))
		}
	}
}

// TestDistance checks that payload goes by single copy once copies into the ring have been slow for some time,
// and through the ring again once they are fast.
func TestDistance(t *testing.T) {
	d := distance{localTime: 300}
	d.ring(t, 10_000, 4)
	if d.nextExposed() {
		t.Fatal("fast copies are slow")
	}
	for range 1000 { // every tenth is interrupted
		d.ring(t, 9, 2)
		d.ring(t, 1, 500)
	}
	if d.nextExposed() {
		t.Fatal("interrupted copies are slow")
	}
	d = distance{localTime: 300}
	d.ring(t, timingInterval+decisionCopies-2, 25)
	if d.isFar {
		t.Fatal("too soon")
	}
	d.ring(t, 1, 25)
	single := 0
	for d.nextExposed() {
		single++
	}
	if single != exposedPerTrial {
		t.Fatalf("%d single copies before the ring is tried again", single)
	}
	d.ring(t, warmupCopies+decisionCopies, 25)
	if !d.nextExposed() {
		t.Fatal("the ring is as slow as before")
	}
	for d.nextExposed() {
	}
	d.ring(t, warmupCopies, 25) // the ring's lines are in no cache
	d.ring(t, decisionCopies-1, 3)
	if !d.isFar {
		t.Fatal("too soon")
	}
	d.ring(t, 1, 3)
	if d.isFar || d.nextExposed() {
		t.Fatal("the ring is fast again")
	}
}

// TestDistanceOfShort checks that short copies are not timed.
func TestDistanceOfShort(t *testing.T) {
	d := distance{localTime: 300}
	for range 1000 {
		if d.shouldTime(minTimedLen - 1) {
			t.Fatal("a short copy is timed")
		}
	}
}

func TestLocalCopy(t *testing.T) {
	if d := localCopyTime(); d < time.Nanosecond || d > time.Second {
		t.Error(d)
	}
}
