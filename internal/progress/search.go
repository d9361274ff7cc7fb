package progress

import (
	"runtime"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/poller"
)

// pause is about how long a caller looks between two times that he lets other
// goroutines run, and looks at the clock.
const pause = 3 * time.Microsecond

// The number of looks between two pauses is found out, from firstPolls on, and kept
// for the next search: most searches end before the first pause.
const (
	firstPolls = 8
	mostPolls  = 1 << 10
)

// Spin is what a caller does who looks: he looks and calls Look until he has found
// what he looks for, or Continue reports false.
type Spin struct {
	p            *SpinPolicy
	polls, every int
	// Of most searches the clock need not be asked: these are 0 until it was.
	start, last, end time.Duration
	found            bool // something, since the clock was asked
}

// Begin begins a search, and reports whether there is a core for it. If so, it is
// to be ended.
func (p *SpinPolicy) Begin(s *Spin) bool {
	if polling.Add(1) > p.maxPollers {
		polling.Add(-1)
		return false
	}
	*s = Spin{p: p, every: int(p.every.Load())}
	return true
}

// End ends the search.
func (s *Spin) End() {
	polling.Add(-1)
	s.p.waited(s.end - s.start)
}

// Look is to be called after each look. If it reports true, other goroutines have
// had their turn if they need it, and Continue is to be asked.
func (s *Spin) Polled() bool {
	s.polls++
	if s.polls <= s.every && !s.p.oversubscribed {
		return false
	}
	return s.yieldToOthers()
}

// yieldToOthers looks for others, lets other processes run on a crowded host, and other
// goroutines if it is time or there was something for them.
func (s *Spin) yieldToOthers() bool {
	// Who looks keeps the runtime from waiting for descriptors, and so those
	// asleep whom the poller would wake.
	if asleep.Load() > 0 && poller.PollOnce() > 0 {
		s.found, s.polls = true, s.every+1
	} else if s.p.oversubscribed {
		yield()
	}
	if s.polls <= s.every {
		return false
	}
	// To let goroutines run costs more than a look does, and has the runtime wake a
	// thread to find out whether there are any. So only if something was found that
	// may be for others, or if there is no other core for them.
	if s.found && asleep.Load() > 0 || polling.Load() >= cores {
		runtime.Gosched()
	}
	return true
}

// Continue reports whether it is worth it to look further. Now is the time, on any clock.
func (s *Spin) Continue(now time.Duration) bool {
	s.polls, s.end = 0, now
	if s.start == 0 || s.found { // whoever is served may soon be served again
		s.start, s.found = now, false
	}
	if now-s.start >= s.p.budget() {
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
