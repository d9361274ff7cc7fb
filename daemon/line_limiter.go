package daemon

import "time"

// minLineInterval is the minimum time between two log lines of the same kind.
const minLineInterval = time.Second

// lineLimiter permits one line every minLineInterval and counts the suppressed lines.
type lineLimiter struct {
	next       time.Duration
	suppressed uint64
	err        error // of the last suppressed line; may be nil
}

// allow reports whether a line with the given error may be logged now, and returns the number of lines suppressed since
// the last line that was logged.
func (l *lineLimiter) allow(now time.Duration, err error) (suppressed uint64, ok bool) {
	if now < l.next {
		l.suppressed++
		l.err = err
		return 0, false
	}
	suppressed, l.suppressed, l.err = l.suppressed, 0, nil
	l.next = now + minLineInterval
	return suppressed, true
}

// takeSuppressed returns and resets the number of suppressed lines and the error of the last one, once minLineInterval
// has passed since the last logged line. Before that, it returns 0.
func (l *lineLimiter) takeSuppressed(now time.Duration) (suppressed uint64, last error) {
	if l.suppressed == 0 || now < l.next {
		return 0, nil
	}
	last = l.err
	suppressed, _ = l.allow(now, nil)
	return suppressed, last
}
