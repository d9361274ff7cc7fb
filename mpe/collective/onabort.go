package collective

import (
	"fmt"
	"slices"
)

// maxAborts is the maximum number of aborts kept for a communicator's calls that this rank has not made yet. A
// correct member is ahead by at most the number of calls that it has in progress.
const maxAborts = 64

// onAbort ends the aborted call if it is in progress, and keeps the abort if this rank has yet to make the call.
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
	// An abort without an epoch may be from an earlier program, so it does not apply to calls yet to be made.
	if a == nil || msg.epoch == 0 || !slices.Contains(a.members, msg.sender) {
		return
	}
	if a.done && (a.epoch != msg.epoch || !isAhead(msg.number, a.lastCall)) {
		if a.epoch == msg.epoch {
			a.countRejected(msg)
		}
		return // it concerns other calls, or a call that is over
	}
	a.keepAbort(msg)
}

// abortWith ends a call that another rank has aborted.
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
		if silent := x.silentMembers(); len(silent) > 0 { // the aborting rank was waiting for them, or for a rank that was
			err = fmt.Errorf("%w; no packet has ever come from %s", err, describeRanks(silent))
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

// error returns the error with which the abort ends a call.
func (f *abortMsg) error() error {
	return &CallFailedError{Rank: f.rank, Collective: f.collective, Comm: f.comm, Number: f.number, Cause: f.cause}
}

// isAhead reports whether number comes after last. Numbers wrap around.
func isAhead(number, last int) bool {
	d := distance(number, last)
	return d > 0 && d < Tags/2
}

func distance(number, last int) int {
	return ((number-last)%Tags + Tags) % Tags
}

// keepAbort keeps an abort of a call that this rank has yet to make. If there are maxAborts, the abort of the latest
// call is dropped.
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

// byOrder is the state of calls in the one communicator whose messages match by order: the world, if it includes
// FPGAs.
type byOrder struct {
	comm     uint32
	lastCall int // number of the last call made, or 0
	// aborts holds the aborts of the next calls. A member whose peer is in a dead end fails these calls at once,
	// before other members make them.
	aborts []abortMsg
}

// keepAbort keeps an abort of one of the next calls if its cause is a lost peer. Aborts with other causes concern
// only the call on the rank that aborted it, because the program there may continue with a call that the other
// ranks make as well. As there is no epoch, the abort may be from an earlier program that made as many calls, and
// whose packets are still in transit. Therefore no abort is kept before a program's first call.
func (b *byOrder) keepAbort(msg *abortMsg) {
	if msg.cause != CausePeerLost || b.lastCall == 0 || msg.comm != b.comm || !isAhead(msg.number, b.lastCall) ||
		len(b.aborts) == maxAborts {
		return
	}
	if !slices.ContainsFunc(b.aborts, func(g abortMsg) bool { return g.number == msg.number }) {
		b.aborts = append(b.aborts, *msg)
	}
}

// begin records a call that the program makes, and returns the abort kept for it, or nil.
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

// pendingAbort returns the abort that was received before the call was made, or nil. It drops aborts of earlier calls.
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
