package daemon

import "time"

// perLine is the minimum time between two log lines of a kind.
const perLine = time.Second

// limiter passes one line per perLine, and counts the suppressed ones.
type limiter struct {
	next       time.Duration
	suppressed uint64
}

// take reports whether a line may pass now, and the number of lines suppressed since the last one.
func (l *limiter) take(now time.Duration) (suppressed uint64, ok bool) {
	if now < l.next {
		l.suppressed++
		return 0, false
	}
	suppressed, l.suppressed = l.suppressed, 0
	l.next = now + perLine
	return suppressed, true
}

// rest returns the number of suppressed lines once perLine has passed, and 0 before.
func (l *limiter) rest(now time.Duration) uint64 {
	if l.suppressed == 0 || now < l.next {
		return 0
	}
	n, _ := l.take(now)
	return n
}
