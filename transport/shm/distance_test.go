package shm

import (
	"testing"
	"time"
)

// ring simulates copies into the ring whose cost is relative to a copy within the process.
func (d *distance) ring(t *testing.T, copies int, cost float64) {
	t.Helper()
	for range copies {
		if d.times(2 * minTimed) {
			d.copied(2*minTimed, time.Duration(cost*float64(2*d.local)))
		}
	}
}

// TestDistance checks that payload goes by single copy once copies into the ring have been slow for some time,
// and through the ring again once they are fast.
func TestDistance(t *testing.T) {
	d := distance{local: 300}
	d.ring(t, 10_000, 4)
	if d.expose() {
		t.Fatal("fast copies are slow")
	}
	for range 1000 { // every tenth is interrupted
		d.ring(t, 9, 2)
		d.ring(t, 1, 500)
	}
	if d.expose() {
		t.Fatal("interrupted copies are slow")
	}
	d = distance{local: 300}
	d.ring(t, timedEvery+enough-2, 25)
	if d.far {
		t.Fatal("too soon")
	}
	d.ring(t, 1, 25)
	single := 0
	for d.expose() {
		single++
	}
	if single != exposures {
		t.Fatalf("%d single copies before the ring is tried again", single)
	}
	d.ring(t, lap+enough, 25)
	if !d.expose() {
		t.Fatal("the ring is as slow as before")
	}
	for d.expose() {
	}
	d.ring(t, lap, 25) // the ring's lines are in no cache
	d.ring(t, enough-1, 3)
	if !d.far {
		t.Fatal("too soon")
	}
	d.ring(t, 1, 3)
	if d.far || d.expose() {
		t.Fatal("the ring is fast again")
	}
}

// TestDistanceOfShort checks that short copies are not timed.
func TestDistanceOfShort(t *testing.T) {
	d := distance{local: 300}
	for range 1000 {
		if d.times(minTimed - 1) {
			t.Fatal("a short copy is timed")
		}
	}
}

func TestLocalCopy(t *testing.T) {
	if d := localCopy(); d < time.Nanosecond || d > time.Second {
		t.Error(d)
	}
}
