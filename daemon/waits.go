package daemon

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// waitWatcher logs each message that has waited longer than its link's warn_after, and later the end of that wait. It
// logs each wait once.
type waitWatcher struct {
	log   *zap.Logger
	ranks []*localRank
	now   func() time.Time
	// logged contains the waits that have been logged and have not ended yet.
	logged map[waitKey]loggedWait
}

// waitKey identifies a wait. A message that proceeds to its next state begins another wait.
type waitKey struct {
	rank, peer uint32
	id         handshake.ID
	state      handshake.State
}

// loggedWait is a wait that was logged. fields are the fields of its first log line, repeated in the line for its end.
type loggedWait struct {
	since  time.Time
	fields []zap.Field
}

// Bounds on the time between two scans. The log line of a wait may be late by up to this time.
const (
	minScanInterval = 20 * time.Millisecond
	maxScanInterval = time.Second
)

// run scans until ctx is done.
func (w *waitWatcher) run(ctx context.Context) error {
	for {
		select {
		case <-time.After(w.interval()): // computed every time, because a reload may change it
			w.scan()
		case <-ctx.Done():
			return nil
		}
	}
}

// interval returns the time between two scans.
func (w *waitWatcher) interval() time.Duration {
	shortest := time.Duration(0)
	for _, r := range w.ranks {
		if d := r.minWarnAfter(); d > 0 && (shortest == 0 || d < shortest) {
			shortest = d
		}
	}
	if shortest == 0 {
		return maxScanInterval
	}
	return min(max(shortest/4, minScanInterval), maxScanInterval)
}

// scan logs the waits that have become too long, and the end of waits logged earlier.
func (w *waitWatcher) scan() {
	now := w.now()
	waiting := make(map[waitKey]bool, len(w.logged))
	for _, rank := range w.ranks {
		shortest := rank.minWarnAfter()
		atLeast := shortest
		if len(w.logged) > 0 {
			atLeast = 0 // a wait logged earlier may be shorter than the current warn_after
		} else if shortest == 0 {
			continue
		}
		for _, wait := range rank.Engine.Waits(atLeast) {
			if rank.isIdleWait(wait) {
				continue
			}
			key := waitKey{wait.Local, wait.Remote, wait.ID, wait.State}
			waiting[key] = true
			after := shortest
			if !wait.AnySource {
				after = rank.Links()[wait.Remote].WarnAfter
			}
			if _, known := w.logged[key]; known || after == 0 || wait.Elapsed < after {
				continue
			}
			fields := waitFields(wait)
			w.logged[key] = loggedWait{now.Add(-wait.Elapsed), fields}
			w.log.Warn("message waits",
				append(fields, zap.Duration("elapsed", handshake.Round(wait.Elapsed)),
					zap.String("detail", wait.Text()))...)
		}
	}
	for key, wait := range w.logged {
		if !waiting[key] {
			delete(w.logged, key)
			w.log.Info("wait ended",
				append(wait.fields, zap.Duration("elapsed", handshake.Round(now.Sub(wait.since))))...)
		}
	}
}

// waitFields returns the log fields that stay constant during a wait.
func waitFields(w mpe.Waiting) []zap.Field {
	fields := []zap.Field{zap.Uint32("rank", w.Local)}
	if !w.AnySource {
		fields = append(fields, zap.Uint32("peer", w.Remote))
	}
	waitsFor := zap.String("waits_for", "held_back")
	if w.For != 0 {
		waitsFor = zap.Stringer("waits_for", w.For)
	}
	return slices.Clip(append(fields, waitsFor))
}
