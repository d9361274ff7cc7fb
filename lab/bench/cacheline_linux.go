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
	// lineRoundTrips is the number of times that a cache line goes back and forth in one stretch of the measurement,
	// and lineStretches the number of stretches. Together they take one or a few milliseconds.
	lineRoundTrips = 500
	lineStretches  = 20
)

// measureLine measures the time in ns that a cache line takes from one processor to another. Two threads, on the first
// two processors that this process may use, alternately write a word in the line. The result comes from the fastest
// stretch, because interrupts slow down others. It is 0 if there are fewer than two processors.
func measureLine() (ns float64, err error) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return 0, fmt.Errorf("sched_getaffinity: %w", err)
	}
	if min(all.Count(), runtime.GOMAXPROCS(0)) < 2 {
		return 0, nil // two threads on one processor would delay each other
	}
	var line bouncedLine
	bound, begin, least := make(chan error, 2), make(chan bool), make(chan time.Duration, 1)
	thread := func(processor int, bounce func()) {
		runtime.LockOSThread() // never unlocked: the thread exits with the goroutine
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

// bouncedLine is a word with padding on both sides. The padding keeps it alone in its cache line, and in the adjacent
// line that some processors fetch together with it.
type bouncedLine struct {
	_    [128]byte
	word atomic.Uint32
	_    [128]byte
}

// ask writes odd numbers to the shared word. After each, it waits for the even number with which another thread
// answers. It returns the duration of the fastest stretch.
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

// answer replaces each odd number in the shared word by the next even number.
func (l *bouncedLine) answer() {
	for next := uint32(1); next < 2*lineStretches*lineRoundTrips; next += 2 {
		for l.word.Load() != next {
		}
		l.word.Store(next + 1)
	}
}
