package daemon

import "time"

// perLine is the minimum time between two log lines of the same kind.
const perLine = time.Second

// limiter lets one line pass every perLine and counts the lines that it suppresses.
type limiter struct {
	next       time.Duration
	suppressed uint64
}

// take reports whether a line may be logged now, and how many lines were suppressed since the last logged one.
func (l *limiter) take(now time.Duration) (suppressed uint64, ok bool) {
	if now < l.next {
		l.suppressed++
		return 0, false
	}
	suppressed, l.suppressed = l.suppressed, 0
	l.next = now + perLine
	return suppressed, true
}

// rest returns the number of suppressed lines if perLine has passed since the last logged line, and 0
// otherwise.
func (l *limiter) rest(now time.Duration) uint64 {
	if l.suppressed == 0 || now < l.next {
		return 0
	}
	n, _ := l.take(now)
	return n
}
