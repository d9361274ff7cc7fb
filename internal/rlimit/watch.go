package rlimit

import "time"

// ReportAfter is the time for which a limit must be reached before it is reported. Descriptors are often exhausted only
// briefly, for example while many connections are made at once.
const ReportAfter = time.Second

// Watch observes an operation that a limit can prevent, such as a connection. The zero Watch has observed no error;
// callers reset it to zero when the operation succeeds.
type Watch struct{ firstSeen time.Time }

// HasLasted reports whether err is an *Error and the Watch observed the first such error at least ReportAfter ago.
func (w *Watch) HasLasted(err error, now time.Time) bool {
	if !Is(err) {
		return false
	}
	if w.firstSeen.IsZero() {
		w.firstSeen = now
	}
	return now.Sub(w.firstSeen) >= ReportAfter
}
