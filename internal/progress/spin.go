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
	maxPolls   = 1 << 10
)

var processStart = time.Now()

// Clock returns the time elapsed since the process started. All waits in the process are measured against it.
func Clock() time.Duration { return time.Since(processStart) }

// maxPollGap is the maximum time between two polls that counts against the budget of a caller on an
// oversubscribed host. Any time beyond it was used by processes to which the caller yielded.
const maxPollGap = 20 * time.Microsecond

// Spin represents one wait of a caller that polls. The caller polls and calls Polled until it finds the event or
// Continue returns false.
type Spin struct {
	policy               *SpinPolicy
	polls, pollsPerPause int
	// These times are 0 until the caller first reads the clock, which most spins do not do because they end earlier.
	start, lastRead, end time.Duration
	eventFound           bool // something was found since the clock was last read
	budgetSpent          bool // the budget is used up
	// yieldsSeldom means that the caller yields less often as long as no other process wants its processor.
	yieldsSeldom bool
	yields       yields
}

// spin returns a new Spin.
func (p *SpinPolicy) spin() Spin {
	s := Spin{policy: p, pollsPerPause: int(p.pollsPerPause.Load()), yieldsSeldom: p.attached,
		yields: yields{pollsPerYield: int(p.pollsPerYield.Load())}}
	s.yields.pollsLeft = s.yields.pollsPerYield
	return s
}

// Begin starts a spin if a core is available for it, and reports whether it did. If it returns true, the caller must
// call End.
func (p *SpinPolicy) Begin(s *Spin) bool {
	if pollingCallers.Add(1) > p.maxPollers {
		pollingCallers.Add(-1)
		return false
	}
	*s = p.spin()
	return true
}

// End ends the spin. If the caller should now sleep, because Continue returned false, End returns how long the
// caller has polled; otherwise, it returns 0.
func (s *Spin) End() (polled time.Duration) {
	pollingCallers.Add(-1)
	if s.budgetSpent {
		if !s.policy.oversubscribed { // the cost is not used on oversubscribed hosts
			measureWakeups()
		}
		return s.end - s.start
	}
	if s.end > s.start {
		s.policy.recordWait(s.end - s.start)
	}
	return 0
}

// Polled must be called after each poll; found reports whether the poll found an event. On an oversubscribed host, the
// caller yields after each poll that found none: the events of a burst are handled together. If Polled returns true,
// other goroutines have had an opportunity to run, and the caller must call Continue.
func (s *Spin) Polled(found bool) bool {
	s.polls++
	s.eventFound = s.eventFound || found
	if s.polls <= s.pollsPerPause && (found || !s.policy.oversubscribed) {
		return false
	}
	return s.yieldToOthers()
}

// yieldToOthers polls for sleeping callers and, on an oversubscribed host, yields to other processes. It yields
// to other goroutines if that is due or if there is an event for one of them.
func (s *Spin) yieldToOthers() bool {
	// While a caller polls, the runtime does not wait for descriptors, so the poller cannot wake up sleeping
	// callers.
	if sleepingCallers.Load() > 0 && serveWatches() > 0 {
		s.eventFound, s.polls = true, s.pollsPerPause+1
	} else if s.policy.oversubscribed {
		s.yield()
	}
	if s.polls <= s.pollsPerPause {
		return false
	}
	// Yielding to goroutines costs more than a poll, and makes the runtime wake up a thread to search for
	// runnable goroutines. Yield only if an event may be for another goroutine, or if no other core is
	// available to run it.
	if s.eventFound && sleepingCallers.Load() > 0 || pollingCallers.Load() >= maxRunnable.Load() {
		runtime.Gosched()
	}
	return true
}

// Continue reports whether the caller should continue to poll. now is the time on any clock.
func (s *Spin) Continue(now time.Duration) bool {
	s.polls, s.end = 0, now
	switch {
	case s.start == 0:
		s.start, s.eventFound = now, false
	case s.eventFound: // more events may follow soon
		s.policy.recordWait(now - s.start)
		s.start, s.eventFound = now, false
	case s.policy.oversubscribed: // the caller did not poll while other processes had the core
		s.start += max(now-s.lastRead-maxPollGap, 0)
	}
	if now-s.start >= s.policy.budget() {
		s.budgetSpent = true
		return false
	}
	switch {
	case s.lastRead == 0:
	case now-s.lastRead < pause && s.pollsPerPause < maxPolls:
		s.pollsPerPause *= 2
		s.policy.pollsPerPause.Store(int32(s.pollsPerPause))
	case now-s.lastRead > 2*pause && s.pollsPerPause > 1:
		s.pollsPerPause /= 2
		s.policy.pollsPerPause.Store(int32(s.pollsPerPause))
	}
	s.lastRead = now
	return true
}
