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

// failures holds the most recent failures of operations.
type failures struct {
	mu   sync.Mutex
	list []state.Failure // newest last
}

// add appends a failure, or increments the count of the last one if the two are the same.
func (f *failures) add(one state.Failure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one.Count = 1
	if n := len(f.list); n > 0 && sameFailure(&f.list[n-1], &one) {
		one.Count += f.list[n-1].Count
		f.list[n-1] = one
		return
	}
	if len(f.list) == state.MaxFailures {
		f.list = slices.Delete(f.list, 0, 1)
	}
	f.list = append(f.list, one)
}

// sameFailure reports whether two failures are equal except for time and count.
func sameFailure(a, b *state.Failure) bool {
	peers := a.Peer == nil && b.Peer == nil || a.Peer != nil && b.Peer != nil && *a.Peer == *b.Peer
	return peers && a.Rank == b.Rank && a.Operation == b.Operation && a.State == b.State && a.Reason == b.Reason &&
		a.Record == b.Record
}

// recent returns the failures, newest first.
func (f *failures) recent() []state.Failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := append([]state.Failure{}, f.list...) // not nil, so that the JSON is [] and not null
	slices.Reverse(list)
	return list
}

// failureOf describes a failed operation with a peer. peer is -1 if no particular peer is involved.
func failureOf(now time.Time, rank, peer int, operation state.Operation, err error) state.Failure {
	f := state.Failure{Time: now, Rank: rank, Operation: operation, State: waitState(err), Reason: err.Error()}
	if peer >= 0 {
		f.Peer = new(peer)
	}
	return f
}

// noteFailure stores a failure and requests a record of it.
func (d *Daemon) noteFailure(rank, peer int, operation state.Operation, err error) {
	now := time.Now()
	f := failureOf(now, rank, peer, operation, err)
	if r := d.recording; r != nil {
		if packets := r.Rank(rank); packets != nil {
			packets.Failed(peer, err)
		}
		if recorder.Worth(err) {
			f.Record = r.failed(now, rank, peer, f.Reason)
		}
	}
	d.failures.add(f)
}

// recentFailures returns the recent failures, newest first. It omits the paths of records that have been
// deleted.
func (d *Daemon) recentFailures() []state.Failure {
	list := d.failures.recent()
	for i := range list {
		if f := &list[i]; f.Record != "" && !d.recording.spool.Has(f.Record) {
			f.Record = ""
		}
	}
	return list
}

// byCaller reports whether an operation failed because its caller cancelled it or the daemon stopped.
func byCaller(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, mpe.ErrClosed) || errors.Is(err, mpe.ErrCancelled)
}

// waitState returns the state in which an operation was waiting when it failed, or "" if it was not waiting.
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
