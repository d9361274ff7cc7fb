package progress

import (
	"runtime"
	"time"
)

// pause is about how long a caller polls between two times that it yields to other goroutines and reads the clock.
const pause = 3 * time.Microsecond

// The number of polls between two pauses is adapted, from firstPolls on, and kept
// for the next Spin: most end before the first pause.
const (
	firstPolls = 8
	mostPolls  = 1 << 10
)

var begun = time.Now()

// Clock is the time by which the process's waits are measured.
func Clock() time.Duration { return time.Since(begun) }

// mostBetween is how much of the time between two polls a caller on an oversubscribed host is
// charged for. The rest is that of processes that it has yielded to.
const mostBetween = 20 * time.Microsecond

// Spin is one wait of a caller that polls: it polls and calls Polled until it has found
// what it waits for, or Continue reports false.
type Spin struct {
	p            *SpinPolicy
	polls, every int
	// Most do not need the clock: these are 0 until it was asked.
	start, last, end time.Duration
	found            bool // something, since the clock was asked
	ended            bool // its budget
	// seldom is set if the caller yields less often while no other process wants its processor.
	seldom bool
	yields yields
}

// spin returns a spin that begins.
func (p *SpinPolicy) spin() Spin {
	s := Spin{p: p, every: int(p.every.Load()), seldom: p.alone, yields: yields{without: int(p.without.Load())}}
	s.yields.left = s.yields.without
	return s
}

// Begin begins a spin, and reports whether there is a core for it. If so, End must be called.
func (p *SpinPolicy) Begin(s *Spin) bool {
	if polling.Add(1) > p.maxPollers {
		polling.Add(-1)
		return false
	}
	*s = p.spin()
	return true
}

// End ends the spin. It returns for how long the caller has polled if it is to sleep now,
// because Continue reported false, and 0 otherwise.
func (s *Spin) End() (polled time.Duration) {
	polling.Add(-1)
	if s.ended {
		if !s.p.oversubscribed { // where it does not matter
			measureWakeups()
		}
		return s.end - s.start
	}
	if s.end > s.start {
		s.p.waited(s.end - s.start)
	}
	return 0
}

// Polled is to be called after each poll. If it reports true, other goroutines have
// run if they need to, and Continue is to be called.
func (s *Spin) Polled() bool {
	s.polls++
	if s.polls <= s.every && !s.p.oversubscribed {
		return false
	}
	return s.yieldToOthers()
}

// yieldToOthers polls for sleepers, yields to other processes on an oversubscribed host, and
// to other goroutines if it is time or something has arrived for them.
func (s *Spin) yieldToOthers() bool {
	// A caller that polls keeps the runtime from waiting for descriptors, and so the poller from waking sleepers.
	if asleep.Load() > 0 && serveWatches() > 0 {
		s.found, s.polls = true, s.every+1
	} else if s.p.oversubscribed {
		s.yield()
	}
	if s.polls <= s.every {
		return false
	}
	// To yield to goroutines costs more than a poll does, and has the runtime wake a thread to find out whether there
	// are any. So only if something was found that may be for others, or if there is no other core for them.
	if s.found && asleep.Load() > 0 || polling.Load() >= scheduled.Load() {
		runtime.Gosched()
	}
	return true
}

// Continue reports whether further polling is worthwhile. Now is the time, on any clock.
func (s *Spin) Continue(now time.Duration) bool {
	s.polls, s.end = 0, now
	switch {
	case s.start == 0:
		s.start, s.found = now, false
	case s.found: // more may follow soon
		s.p.waited(now - s.start)
		s.start, s.found = now, false
	case s.p.oversubscribed: // it has not polled while others had the core
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
