package progress

import (
	"runtime"
	"time"
)

// pause is roughly how long a caller polls before it yields to other goroutines and reads the clock.
const pause = 3 * time.Microsecond

// The number of polls between two pauses starts at firstPolls and is then adapted. It is kept for the next
// Spin, because most spins end before the first pause.
const (
	firstPolls = 8
	mostPolls  = 1 << 10
)

var begun = time.Now()

// Clock returns the time elapsed since the process started. All waits in the process are measured against it.
func Clock() time.Duration { return time.Since(begun) }

// mostBetween is the maximum time between two polls that counts against the budget of a caller on an
// oversubscribed host. Any time beyond it was used by processes to which the caller yielded.
const mostBetween = 20 * time.Microsecond

// Spin is one wait of a caller that polls. The caller polls and calls Polled until it finds the event or
// Continue returns false.
type Spin struct {
	p            *SpinPolicy
	polls, every int
	// These are 0 until the clock is first read. Most spins end before that.
	start, last, end time.Duration
	found            bool // something was found since the clock was last read
	ended            bool // the budget is used up
	// seldom means that the caller yields less often as long as no other process wants its processor.
	seldom bool
	yields yields
}

// spin returns a new Spin.
func (p *SpinPolicy) spin() Spin {
	s := Spin{p: p, every: int(p.every.Load()), seldom: p.alone, yields: yields{without: int(p.without.Load())}}
	s.yields.left = s.yields.without
	return s
}

// Begin starts a spin if there is a core for it, and reports whether there is. If it returns true, the caller
// must call End.
func (p *SpinPolicy) Begin(s *Spin) bool {
	if polling.Add(1) > p.maxPollers {
		polling.Add(-1)
		return false
	}
	*s = p.spin()
	return true
}

// End ends the spin. If the caller should now sleep, because Continue returned false, End returns how long the
// caller has polled; otherwise, it returns 0.
func (s *Spin) End() (polled time.Duration) {
	polling.Add(-1)
	if s.ended {
		if !s.p.oversubscribed { // the cost is not used on oversubscribed hosts
			measureWakeups()
		}
		return s.end - s.start
	}
	if s.end > s.start {
		s.p.waited(s.end - s.start)
	}
	return 0
}

// Polled must be called after each poll. If it returns true, other goroutines have had an opportunity to run,
// and the caller must call Continue.
func (s *Spin) Polled() bool {
	s.polls++
	if s.polls <= s.every && !s.p.oversubscribed {
		return false
	}
	return s.yieldToOthers()
}

// yieldToOthers polls for sleeping callers and, on an oversubscribed host, yields to other processes. It yields
// to other goroutines if that is due or if there is an event for one of them.
func (s *Spin) yieldToOthers() bool {
	// While a caller polls, the runtime does not wait for descriptors, so the poller cannot wake up sleeping
	// callers.
	if asleep.Load() > 0 && serveWatches() > 0 {
		s.found, s.polls = true, s.every+1
	} else if s.p.oversubscribed {
		s.yield()
	}
	if s.polls <= s.every {
		return false
	}
	// Yielding to goroutines costs more than a poll, and makes the runtime wake up a thread to search for
	// runnable goroutines. Yield only if an event may be for another goroutine, or if no other core is
	// available to run it.
	if s.found && asleep.Load() > 0 || polling.Load() >= scheduled.Load() {
		runtime.Gosched()
	}
	return true
}

// Continue reports whether the caller should continue to poll. now is the time on any clock.
func (s *Spin) Continue(now time.Duration) bool {
	s.polls, s.end = 0, now
	switch {
	case s.start == 0:
		s.start, s.found = now, false
	case s.found: // more events may follow soon
		s.p.waited(now - s.start)
		s.start, s.found = now, false
	case s.p.oversubscribed: // while other processes had the core, the caller did not poll
		s.start += max(now-s.last-mostBetween, 0)
	}
	if now-s.start >= s.p.budget() {
		s.ended = true
		return false
	}
	switch {
	case s.last == 0:
	case now-s.last < pause && s.every < mostPolls:
		s.every *= 2
		s.p.every.Store(int32(s.every))
	case now-s.last > 2*pause && s.every > 1:
		s.every /= 2
		s.p.every.Store(int32(s.every))
	}
	s.last = now
	return true
}
