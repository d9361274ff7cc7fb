package collective

import (
	"fmt"
	"slices"
)

// maxAborts limits the number of aborts stored per communicator for calls that this rank has not made yet. A correct
// member is ahead of this rank by no more calls than it has in progress.
const maxAborts = 64

// onAbort ends the aborted call if it is in progress, or stores the abort if this rank has yet to make the call.
func (e *Executor) onAbort(msg *abortMsg) {
	for _, exec := range e.calls {
		if exec.Comm == msg.comm && exec.Tag == msg.number && exec.epoch() == msg.epoch {
			if slices.Contains(exec.Members, msg.sender) {
				if a := exec.agreement(); a != nil {
					a.countRejected(msg)
				}
				exec.abortWith(msg)
			}
			return
		}
	}
	a := e.agreements[msg.comm]
	if a == nil && msg.epoch == 0 {
		e.byOrder.keepAbort(msg)
	}
	// An abort without an epoch may come from an earlier program, so it must not end a call that this rank has yet to
	// make.
	if a == nil || msg.epoch == 0 || !slices.Contains(a.members, msg.sender) {
		return
	}
	if a.done && (a.epoch != msg.epoch || !isAhead(msg.number, a.lastCall)) {
		if a.epoch == msg.epoch {
			a.countRejected(msg)
		}
		return // it concerns another communicator, or an earlier call
	}
	a.keepAbort(msg)
}

// abortWith ends a call because another rank aborted it. If a user function is running, the call ends only when the
// function returns.
func (x *Execution) abortWith(msg *abortMsg) {
	if x.failErr != nil { // a user's function still uses the call's buffers
		return
	}
	x.aborted = true
	err := msg.error()
	if !x.started {
		again := *msg
		again.sender = x.executor.engine.Rank()
		x.sendLater(&again)
		x.executor.dequeue(x)
		if silent := x.silentMembers(); len(silent) > 0 { // directly or indirectly, the aborting rank waited for them
			err = fmt.Errorf("%w; no packet was ever received from %s", err, describeRanks(silent))
		}
		x.end(err)
		return
	}
	x.failErr = err
	x.cancelAll()
	switch {
	case x.computing == 0:
		x.end(err)
	case x.CancelUser != nil:
		x.CancelUser(err)
	}
}

// error returns the error of a call that ends because of the abort.
func (f *abortMsg) error() error {
	return &CallFailedError{Rank: f.rank, Collective: f.collective, Comm: f.comm, Number: f.number, Cause: f.cause}
}

// isAhead reports whether the call numbered call comes after the one numbered last. Numbers wrap around.
func isAhead(number, last int) bool {
	d := distance(number, last)
	return d > 0 && d < Tags/2
}

func distance(number, last int) int {
	return ((number-last)%Tags + Tags) % Tags
}

// keepAbort stores the abort of a call that this rank has yet to make. If it already stores maxAborts, it drops the
// abort of the latest call.
func (a *agreement) keepAbort(msg *abortMsg) {
	if slices.ContainsFunc(a.aborts, func(g abortMsg) bool { return g.number == msg.number && g.epoch == msg.epoch }) {
		return
	}
	if len(a.aborts) < maxAborts {
		a.aborts = append(a.aborts, *msg)
		return
	}
	last := 0
	for i := range a.aborts {
		if distance(a.aborts[i].number, a.lastCall) > distance(a.aborts[last].number, a.lastCall) {
			last = i
		}
	}
	if distance(msg.number, a.lastCall) < distance(a.aborts[last].number, a.lastCall) {
		a.aborts[last] = *msg
	}
}

// byOrder records the calls in the only communicator whose messages match by order: the world, if it includes FPGAs.
type byOrder struct {
	comm     uint32
	lastCall int // number of the last call made, or 0
	// aborts holds the aborts of calls that this rank has not made yet. They come from members whose peer is in a dead
	// end, so that their calls fail at once.
	aborts []abortMsg
}

// keepAbort stores an abort of a call that this rank has not made yet, if its cause is a lost peer. After any other
// cause, the aborting rank's program may continue with calls that the other ranks make as well. Without an epoch, the
// abort may also be from an earlier program with packets still in transit, so keepAbort stores none before a program's
// first call.
func (b *byOrder) keepAbort(msg *abortMsg) {
	if msg.cause != CausePeerLost || b.lastCall == 0 || msg.comm != b.comm || !isAhead(msg.number, b.lastCall) ||
		len(b.aborts) == maxAborts {
		return
	}
	if !slices.ContainsFunc(b.aborts, func(g abortMsg) bool { return g.number == msg.number }) {
		b.aborts = append(b.aborts, *msg)
	}
}

// begin records that the program makes a call, and returns the stored abort of this call, or nil.
func (b *byOrder) begin(exec *Execution) (found *abortMsg) {
	if exec.Call.Ranks == 1 {
		return nil
	}
	b.comm, b.lastCall = exec.Comm, exec.Tag
	b.aborts = slices.DeleteFunc(b.aborts, func(f abortMsg) bool {
		if f.number == exec.Tag && slices.Contains(exec.Members, f.sender) {
			found = &f
		}
		return !isAhead(f.number, exec.Tag)
	})
	return found
}

// pendingAbort returns the stored abort of the call, or nil. It drops aborts of earlier calls.
func (x *Execution) pendingAbort() *abortMsg {
	a := x.agreement()
	if a == nil || len(a.aborts) == 0 || !a.done {
		return nil
	}
	var found *abortMsg
	a.aborts = slices.DeleteFunc(a.aborts, func(f abortMsg) bool {
		if f.number == x.Tag && f.epoch == a.epoch {
			found = &f
		}
		return !isAhead(f.number, x.Tag)
	})
	return found
}

// endAborted ends a call that was aborted before it began.
func (x *Execution) endAborted(f *abortMsg) {
	if a := x.agreement(); a != nil {
		a.countRejected(f)
	}
	x.aborted, x.started = true, true // started is set so that its order continues
	x.failErr = f.error()
	x.end(x.failErr)
}
