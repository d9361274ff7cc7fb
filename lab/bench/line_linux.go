package bench

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lineRoundTrips is how often a cache line moves there and back in a stretch, and
	// lineStretches how many of these are timed: a millisecond in all, or a few.
	lineRoundTrips = 500
	lineStretches  = 20
)

// measureLine measures how long it takes to move a cache line from one processor to
// another, in ns: two threads, on the first two processors that this process may use,
// answer each other by a word of the line. The fastest stretch counts, since an interrupt
// makes others slower. It is 0 where there are no two processors.
func measureLine() (ns float64, err error) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return 0, fmt.Errorf("sched_getaffinity: %w", err)
	}
	if min(all.Count(), runtime.GOMAXPROCS(0)) < 2 {
		return 0, nil // a thread that waits would keep the other one from its processor
	}
	var line bouncedLine
	bound, begin, least := make(chan error, 2), make(chan bool), make(chan time.Duration, 1)
	thread := func(processor int, bounce func()) {
		runtime.LockOSThread() // for good: the thread ends with it
		bound <- stayOn(processor)
		if <-begin {
			bounce()
		}
	}
	go thread(0, func() { least <- line.ask() })
	go thread(1, line.answer)
	err = errors.Join(<-bound, <-bound)
	begin <- err == nil
	begin <- err == nil
	if err != nil {
		return 0, err
	}
	return float64(<-least) / (2 * lineRoundTrips), nil
}

// bouncedLine is a word alone in its cache line, and in the one beside, which some
// processors fetch with it.
type bouncedLine struct {
	_    [128]byte
	word atomic.Uint32
	_    [128]byte
}

// ask writes odd numbers and waits for the even ones, and returns how long the fastest
// stretch takes.
func (l *bouncedLine) ask() time.Duration {
	var least time.Duration
	next := uint32(1)
	for i := range lineStretches {
		start := time.Now()
		for range lineRoundTrips {
			l.word.Store(next)
			for l.word.Load() == next {
			}
			next += 2
		}
		if took := time.Since(start); i == 0 || took < least {
			least = took
		}
	}
	return least
}

// answer writes an even number after each odd one.
func (l *bouncedLine) answer() {
	for next := uint32(1); next < 2*lineStretches*lineRoundTrips; next += 2 {
		for l.word.Load() != next {
		}
		l.word.Store(next + 1)
	}
}
