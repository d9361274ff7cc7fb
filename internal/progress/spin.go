package progress

import (
	"runtime"
	"time"
)

// pause is roughly the time that a caller polls between yielding to other goroutines and reading the clock.
const pause = 3 * time.Microsecond

// The number of polls between two pauses is adapted, beginning with firstPolls, and kept for the next Spin: most of
// them end before the first pause.
const (
	firstPolls = 8
	mostPolls  = 1 << 10
)

var begun = time.Now()

// Clock returns the time by which the process's waits are measured.
func Clock() time.Duration { return time.Since(begun) }

// mostBetween limits the time between two polls that a caller on an oversubscribed host is charged for. The rest was
// used by processes to which it yielded.
const mostBetween = 20 * time.Microsecond

// Spin is one wait of a polling caller: it polls and calls Polled until it has found the event, or Continue returns
// false.
type Spin struct {
	p            *SpinPolicy
	polls, every int
	// Most spins do not need the clock: these are 0 until it is read.
	start, last, end time.Duration
	found            bool // something was found since the clock was read
	ended            bool // the budget is used up
	// seldom means that the caller yields less often while no other process wants its processor.
	seldom bool
	yields yields
}

// spin returns a new Spin.
func (p *SpinPolicy) spin() Spin {
	s := Spin{p: p, every: int(p.every.Load()), seldom: p.alone, yields: yields{without: int(p.without.Load())}}
	s.yields.left = s.yields.without
	return s
}

// Begin begins a spin, and reports whether there is a core for it. If there is, the caller must call End.
func (p *SpinPolicy) Begin(s *Spin) bool {
	if polling.Add(1) > p.maxPollers {
		polling.Add(-1)
		return false
	}
	*s = p.spin()
	return true
}

// End ends the spin. If the caller should sleep now, because Continue returned false, End returns how long it has
// polled, and otherwise 0.
func (s *Spin) End() (polled time.Duration) {
	polling.Add(-1)
	if s.ended {
		if !s.p.oversubscribed { // oversubscribed hosts do not use the cost
			measureWakeups()
		}
		return s.end - s.start
	}
	if s.end > s.start {
		s.p.waited(s.end - s.start)
	}
	return 0
}

// Polled must be called after each poll. If it returns true, other goroutines have had the opportunity to run, and
// Continue must be called.
func (s *Spin) Polled() bool {
	s.polls++
	if s.polls <= s.every && !s.p.oversubscribed {
		return false
	}
	return s.yieldToOthers()
}

// yieldToOthers polls for sleeping callers, and yields to other processes on an oversubscribed host. It yields to
// other goroutines if it is time, or if there is an event for them.
func (s *Spin) yieldToOthers() bool {
	// A polling caller keeps the runtime from waiting for descriptors, and so the poller from waking up sleeping
	// callers.
	if asleep.Load() > 0 && serveWatches() > 0 {
		s.found, s.polls = true, s.every+1
	} else if s.p.oversubscribed {
		s.yield()
	}
	if s.polls <= s.every {
		return false
	}
	// Yielding to goroutines costs more than a poll, and makes the runtime wake up a thread to search for runnable
	// ones. So yield only if an event may be for another goroutine, or if there is no other core for it.
	if s.found && asleep.Load() > 0 || polling.Load() >= scheduled.Load() {
		runtime.Gosched()
	}
	return true
}

// Continue reports whether to continue polling. now is the time, on any clock.
func (s *Spin) Continue(now time.Duration) bool {
	s.polls, s.end = 0, now
	switch {
	case s.start == 0:
		s.start, s.found = now, false
	case s.found: // more may follow soon
		s.p.waited(now - s.start)
		s.start, s.found = now, false
	case s.p.oversubscribed: // it did not poll while other processes had the core
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
