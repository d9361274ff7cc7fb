package capture

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
)

// OpenWait describes a wait in progress.
type OpenWait struct {
	Since time.Time
	Text  string
}

// OpenWaits returns the waits in progress that have lasted at least the given time, oldest first. It does not change
// the tracker.
func (t *Tracker) OpenWaits(atLeast time.Duration) []OpenWait {
	var list []OpenWait
	add := func(since time.Time, text string) {
		if t.now.Sub(since) >= atLeast {
			list = append(list, OpenWait{since, text})
		}
	}
	for _, f := range t.sortedFlows() {
		if f.msg != nil {
			w := f.openWait(f.msg)
			add(w.Since, t.waitText(w))
		}
	}
	for _, f := range t.extendedFlows() {
		for _, m := range f.openMessages {
			if m.isUnmatched() {
				add(m.beginTime, f.unmatchedText(m))
			} else {
				add(m.last, f.incompleteText(m))
			}
		}
	}
	slices.SortStableFunc(list,
		func(a, b OpenWait) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Text, b.Text)) })
	return list
}

// isUnmatched reports whether the message still waits for a receive that matches it.
func (m *extMessage) isUnmatched() bool { return m.requestSeen && !m.cleared && m.receivedBytes == 0 }

// unmatchedText and incompleteText describe the wait for an open message: one that no receive has matched, and one of
// which bytes are missing.
func (f *extFlow) unmatchedText(m *extMessage) string {
	return fmt.Sprintf("rank %d has waited %v for CLEAR_TO_SEND from rank %d: no receive has matched message %d, tag "+
		"%d, communicator %d, %d bytes",
		f.counts.Src, handshake.Round(f.tracker.now.Sub(m.beginTime)), f.counts.Dst, m.number, m.tag, m.comm, m.length)
}

func (f *extFlow) incompleteText(msg *extMessage) string {
	want := msg.length
	if msg.cleared {
		want = msg.acceptedLen
	}
	text := fmt.Sprintf("rank %d has waited %v for DATA from rank %d: %d of %d bytes of message %d were recorded",
		f.counts.Dst, handshake.Round(f.tracker.now.Sub(msg.last)), f.counts.Src, msg.receivedBytes, want, msg.number)
	if msg.beforeRecording {
		text += ", which had begun before the recording"
	}
	return text
}
