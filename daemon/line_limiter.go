package daemon

import "time"

// minLineInterval is the minimum time between two log lines of the same kind.
const minLineInterval = time.Second

// lineLimiter permits one line every minLineInterval and counts the suppressed lines.
type lineLimiter struct {
	next       time.Duration
	suppressed uint64
}

// allow reports whether a line may be logged now, and returns the number of lines suppressed since the last line that
// was logged.
func (l *lineLimiter) allow(now time.Duration) (suppressed uint64, ok bool) {
	if now < l.next {
		l.suppressed++
		return 0, false
	}
	suppressed, l.suppressed = l.suppressed, 0
	l.next = now + minLineInterval
	return suppressed, true
}

// takeSuppressed returns and resets the number of suppressed lines once minLineInterval has passed since the last
// logged line. Before that, it returns 0.
func (l *lineLimiter) takeSuppressed(now time.Duration) uint64 {
	if l.suppressed == 0 || now < l.next {
		return 0
	}
	n, _ := l.allow(now)
	return n
}
