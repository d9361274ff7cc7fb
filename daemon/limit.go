package daemon

import "time"

// perLine is how often one kind of trouble is logged at most.
const perLine = time.Second

// limiter lets one line pass per perLine, and counts the others.
type limiter struct {
	next       time.Duration
	suppressed uint64
}

// take reports whether a line may pass now, and how many did not since the last
// one that did.
func (l *limiter) take(now time.Duration) (suppressed uint64, ok bool) {
	if now < l.next {
		l.suppressed++
		return 0, false
	}
	suppressed, l.suppressed = l.suppressed, 0
	l.next = now + perLine
	return suppressed, true
}

// rest returns the number of suppressed lines once the time for one has come,
// and else 0.
func (l *limiter) rest(now time.Duration) uint64 {
	if l.suppressed == 0 || now < l.next {
		return 0
	}
	n, _ := l.take(now)
	return n
}
