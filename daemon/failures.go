package daemon

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/node/recorder"
)

// failureLog holds the most recent failures of operations.
type failureLog struct {
	mu      sync.Mutex
	entries []state.Failure // newest last
}

// addFailure appends a failure to the log. If the failure equals the last one, addFailure increments the count of the
// last one instead.
func (f *failureLog) addFailure(one state.Failure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one.Count = 1
	if n := len(f.entries); n > 0 && sameFailure(&f.entries[n-1], &one) {
		one.Count += f.entries[n-1].Count
		f.entries[n-1] = one
		return
	}
	if len(f.entries) == state.MaxFailures {
		f.entries = slices.Delete(f.entries, 0, 1)
	}
	f.entries = append(f.entries, one)
}

// sameFailure reports whether two failures are equal apart from their times and counts.
func sameFailure(a, b *state.Failure) bool {
	peers := a.Peer == nil && b.Peer == nil || a.Peer != nil && b.Peer != nil && *a.Peer == *b.Peer
	return peers && a.Rank == b.Rank && a.Operation == b.Operation && a.State == b.State && a.Reason == b.Reason &&
		a.Record == b.Record
}

// recent returns the failures, newest first.
func (f *failureLog) recent() []state.Failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := append([]state.Failure{}, f.entries...) // not nil, so that the JSON is [] and not null
	slices.Reverse(list)
	return list
}

// newFailure describes a failed operation with a peer. peer is -1 if no particular peer is involved.
func newFailure(now time.Time, rank, peer int, operation state.Operation, err error) state.Failure {
	f := state.Failure{Time: now, Rank: rank, Operation: operation, State: waitState(err), Reason: err.Error()}
	if peer >= 0 {
		f.Peer = new(peer)
	}
	return f
}

// noteFailure stores a failure and, if it is worth recording, requests a record of the packets around it.
func (d *Daemon) noteFailure(rank, peer int, operation state.Operation, err error) {
	now := time.Now()
	failure := newFailure(now, rank, peer, operation, err)
	if r := d.recording; r != nil {
		if packets := r.Rank(rank); packets != nil {
			packets.RecordFailure(peer, err)
		}
		if recorder.WorthRecording(err) {
			failure.Record = r.requestRecord(now, rank, peer, failure.Reason)
		}
	}
	d.failures.addFailure(failure)
}

// recentFailures returns the recent failures, newest first, without the paths of deleted records.
func (d *Daemon) recentFailures() []state.Failure {
	list := d.failures.recent()
	for i := range list {
		if f := &list[i]; f.Record != "" && !d.recording.spool.Has(f.Record) {
			f.Record = ""
		}
	}
	return list
}

// isCallerCancel reports whether an operation failed because its caller cancelled it or because the daemon stopped.
func isCallerCancel(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, mpe.ErrClosed) || errors.Is(err, mpe.ErrCancelled)
}

// waitState returns the state in which a failed operation was waiting, or "" if it was not waiting.
func waitState(err error) string {
	if e, ok := errors.AsType[*mpe.WaitError](err); ok {
		return e.State.String()
	}
	if e, ok := errors.AsType[*handshake.TimeoutError](err); ok {
		return e.State.String()
	}
	if e, ok := errors.AsType[*handshake.RemoteError](err); ok {
		return e.State.String()
	}
	if errors.Is(err, handshake.ErrPartial) {
		return handshake.WaitAck.String()
	}
	if e, ok := errors.AsType[*extended.TimeoutError](err); ok {
		return e.State.String()
	}
	if e, ok := errors.AsType[*extended.SessionError](err); ok {
		return e.State.String()
	}
	if e, ok := errors.AsType[*extended.RemoteError](err); ok {
		return e.State.String()
	}
	return ""
}
