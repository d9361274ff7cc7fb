package progress

import (
	"testing"
	"time"
)

// TestYields checks that a caller that has its processor to itself spends an eighth of its time on yields, and
// that a caller that shares its processor yields after each poll.
func TestYields(t *testing.T) {
	const alone, switched = 400 * time.Nanosecond, 3 * time.Microsecond
	for _, tt := range []struct {
		name       string
		poll, took time.Duration
		least      time.Duration // minimum time between two yields
		most       time.Duration
	}{
		{"alone, short polls", 50 * time.Nanosecond, alone, maxPollsPerYield * 50 * time.Nanosecond, 7 * time.Microsecond},
		{"alone, long polls", time.Microsecond, alone, 1600 * time.Nanosecond, 7 * time.Microsecond},
		{"alone, polls longer than that", 10 * time.Microsecond, alone, 10 * time.Microsecond, 10 * time.Microsecond},
		{"shared", 50 * time.Nanosecond, switched, 50 * time.Nanosecond, 50 * time.Nanosecond},
	} {
		var y yields
		now, count := time.Duration(1), 0
		for last := now; count < 100; {
			now += tt.poll
			if !y.isDue() {
				continue
			}
			if d := now - last; count > 10 && (d < tt.least || d > tt.most) {
				t.Errorf("%s: %v between two yields, want %v to %v", tt.name, d, tt.least, tt.most)
			}
			if others := y.record(now, now+tt.took); others != (tt.took == switched) {
				t.Errorf("%s: others have had the processor: %v", tt.name, others)
			}
			now += tt.took
			last = now
			count++
		}
		// Another process starts. After the next yield, a yield follows each poll.
		for !y.isDue() {
			now += tt.poll
		}
		y.record(now, now+switched)
		if !y.isDue() {
			t.Errorf("%s: no yield after a poll while the processor is shared", tt.name)
		}
	}
}

// TestYieldsAreKept checks that a spin starts with the interval that the previous spin has determined.
func TestYieldsAreKept(t *testing.T) {
	var p SpinPolicy
	p.Init(true)
	p.pollsPerYield.Store(3)
	s := p.spin()
	for i := range 4 {
		if due := s.yields.isDue(); due != (i == 3) {
			t.Errorf("poll %d: due %v", i, due)
		}
	}
}

// TestYieldsAfterEmptyPolls checks that, on an oversubscribed host, a caller yields after each poll that found nothing,
// and after successful polls only once they have taken as long as a pause.
func TestYieldsAfterEmptyPolls(t *testing.T) {
	for _, tt := range []struct {
		found bool
		polls int
		want  int // number of yields
	}{{false, 1, 1}, {false, firstPolls, firstPolls}, {true, firstPolls, 0}, {true, firstPolls + 1, 1}} {
		var p SpinPolicy
		p.Init(true)
		s := p.spin()
		const left = 1 << 10
		s.yieldsSeldom, s.yields.pollsLeft = true, left // counts the yields
		for range tt.polls {
			s.Polled(tt.found)
		}
		if n := left - s.yields.pollsLeft; n != tt.want {
			t.Errorf("%d polls, found %v: %d yields, want %d", tt.polls, tt.found, n, tt.want)
		}
	}
}

// TestExamineProcessor checks that a caller does not examine its processor more often than every examineEvery.
func TestExamineProcessor(t *testing.T) {
	var p SpinPolicy
	p.Init(true)
	p.leaveAvoided(time.Hour) // has no effect
	n := 0
	p.avoidedCPU = func() int { n++; return -1 }
	for i, tt := range []struct {
		now  time.Duration
		want int
	}{{time.Hour, 1}, {time.Hour + examineEvery - 1, 1}, {time.Hour + examineEvery, 2}, {time.Hour + examineEvery, 2}} {
		if p.leaveAvoided(tt.now); n != tt.want {
			t.Errorf("call %d: examined %d times, want %d", i, n, tt.want)
		}
	}
}
