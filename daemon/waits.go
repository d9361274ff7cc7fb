package daemon

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// waitWatcher warns of messages that wait for longer than their link's
// warn_after, once each, and says when the wait is over.
type waitWatcher struct {
	log   *zap.Logger
	ranks []*localRank
	now   func() time.Time
	// renewed has a value when warn_after may be another one.
	renewed <-chan struct{}
	// warned are the waits that the log knows of.
	warned map[waitKey]warnedWait
}

type waitKey struct {
	rank, peer uint32
	id         handshake.ID
	state      handshake.State
}

type warnedWait struct {
	since time.Time
	text  string
}

// The bounds of the time between two looks: a wait is reported late by as much.
const (
	minLook = 20 * time.Millisecond
	maxLook = time.Second
)

// run looks until ctx is done.
func (w *waitWatcher) run(ctx context.Context) error {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		if every := w.interval(); every > 0 {
			tick.Reset(every)
		} else {
			tick.Stop()
		}
		if !w.runUntilRenewed(ctx, tick.C) {
			return nil
		}
	}
}

// runUntilRenewed looks at every tick. It reports false when ctx is done.
func (w *waitWatcher) runUntilRenewed(ctx context.Context, tick <-chan time.Time) bool {
	for {
		select {
		case <-tick:
			w.look()
		case <-w.renewed:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// interval returns the time between two looks, or 0 if no link wants any.
func (w *waitWatcher) interval() time.Duration {
	shortest := time.Duration(0)
	for _, r := range w.ranks {
		if d := r.warnAfter(); d > 0 && (shortest == 0 || d < shortest) {
			shortest = d
		}
	}
	if shortest == 0 {
		return 0
	}
	return min(max(shortest/4, minLook), maxLook)
}

// look compares what waits now with what the log knows of.
func (w *waitWatcher) look() {
	now := w.now()
	waiting := make(map[waitKey]bool, len(w.warned))
	for _, r := range w.ranks {
		shortest := r.warnAfter()
		if shortest == 0 {
			continue
		}
		for _, wait := range r.Engine.Waits(shortest) {
			if r.idles(wait) {
				continue
			}
			key := waitKey{wait.Local, wait.Remote, wait.ID, wait.State}
			waiting[key] = true
			after := shortest
			if !wait.AnySource {
				after = r.Links()[wait.Remote].WarnAfter
			}
			if _, known := w.warned[key]; known || after == 0 || wait.Elapsed < after {
				continue
			}
			w.warned[key] = warnedWait{now.Add(-wait.Elapsed), waitText(wait)}
			w.log.Warn(wait.Text, zap.Uint32("rank", wait.Local), zap.Uint32("peer", wait.Remote))
		}
	}
	for key, wait := range w.warned {
		if !waiting[key] {
			delete(w.warned, key)
			w.log.Info(fmt.Sprintf("%s: that is over after %v", wait.text, handshake.Round(now.Sub(wait.since))),
				zap.Uint32("rank", key.rank), zap.Uint32("peer", key.peer))
		}
	}
}

// waitText is the wait without its duration.
func waitText(w mpe.Waiting) string {
	switch {
	case w.AnySource:
		return fmt.Sprintf("rank %d waited for a message from any rank", w.Local)
	case w.For == 0:
		return fmt.Sprintf("rank %d held a send to rank %d back", w.Local, w.Remote)
	}
	return fmt.Sprintf("rank %d waited for %v from rank %d", w.Local, w.For, w.Remote)
}
