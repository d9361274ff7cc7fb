package extended

import (
	"testing"
	"time"
)

// The pacer allows an eighth of a window at once, then packets at the rate, and makes up for the delay of a late timer,
// but not for a pause.
func TestPacer(t *testing.T) {
	const every = time.Millisecond
	var p pacer
	now := time.Second
	for _, x := range []struct {
		what  string
		after time.Duration
		room  int
		sends int
	}{
		{"at first", 0, 10, 10},
		{"at once", 0, 0, 0},
		{"when half of it may go again", 5 * every, 5, 5},
		{"late by 7 packets", 12 * every, 12, 12},
		{"a little later", every, 1, 1},
		{"after a pause", time.Hour, 10, 3},
		{"the rest", 0, 7, 7},
	} {
		now += x.after
		room := p.sendBudget(now, every, 80)
		if room != x.room {
			t.Errorf("%s: budget of %d packets, want %d", x.what, room, x.room)
		}
		p.onSent(x.sends, every, 80)
		if p.waiting = room == x.sends && x.what != "a little later"; p.waiting && p.resumeAt <= now {
			t.Errorf("%s: others wait until %v, which has passed", x.what, p.resumeAt)
		}
	}
}

// On a long path a window is spaced; on a short one it is sent at once.
func TestPacingOfLongPath(t *testing.T) {
	for _, x := range []struct {
		trip  time.Duration
		paced bool
	}{{longRTT - 10*time.Microsecond, false}, {longRTT + 10*time.Microsecond, true}, {50 * time.Millisecond, true}} {
		w := newWorld(Config{})
		w.path(func(time.Duration) time.Duration { return x.trip / 2 })
		w.stream(t, 1<<20)
		c := w.nodes[0].conn
		var most, now int
		var at Instant
		fault := w.fault
		w.fault = func(from, nth int, b []byte) []fate {
			if from == 0 && w.now != at {
				at, now = w.now, 0
			}
			if from == 0 {
				now++
				most = max(most, now)
			}
			return fault(from, nth, b)
		}
		w.stream(t, 4<<20)
		if c.path.paced != x.paced {
			t.Errorf("round trip of %v: paced %v", x.trip, c.path.paced)
		}
		if limit := max(maxBurst(c.path.window.packets), initialWindow) + 2; x.paced != (most <= limit) {
			t.Errorf("round trip of %v: %d packets went at once, of a window of %d", x.trip, most,
				c.path.window.packets)
		}
	}
}
