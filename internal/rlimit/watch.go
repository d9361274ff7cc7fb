package rlimit

import "time"

// ReportAfter is the time that a limit has to last before it is reported. Descriptors are often exhausted for a moment
// only, as while many connections are made at once.
const ReportAfter = time.Second

// Watch observes one thing that limits can prevent, such as a connection. The zero value has observed none. Callers
// assign it when the thing succeeds.
type Watch struct{ since time.Time }

// Lasts reports whether err is an *Error, and the first one was observed at least ReportAfter ago.
func (w *Watch) Lasts(err error, now time.Time) bool {
	if !Is(err) {
		return false
	}
	if w.since.IsZero() {
		w.since = now
	}
	return now.Sub(w.since) >= ReportAfter
}
