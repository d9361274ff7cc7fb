package collective

import (
	"fmt"
	"slices"
)

// maxAborts bounds how many aborts of calls that were not made here yet are kept for a
// communicator. An honest member is as far ahead as it has calls under way at a time.
const maxAborts = 64

// onAbort ends the call of an abort: the one under way, or one that is still to be made.
func (e *Executor) onAbort(f *abortMsg) {
	for _, x := range e.calls {
		if x.Comm == f.comm && x.Tag == f.number && x.epoch() == f.epoch {
			if slices.Contains(x.Members, f.sender) {
				if a := x.agreement(); a != nil {
					a.skip(f)
				}
				x.stop(f)
			}
			return
		}
	}
	a := e.agreements[f.comm]
	if a == nil && f.epoch == 0 {
		e.byOrder.remember(f)
	}
	// Without an epoch, it may be from before this program: it concerns no later call.
	if a == nil || f.epoch == 0 || !slices.Contains(a.members, f.sender) {
		return
	}
	if a.done && (a.epoch != f.epoch || !ahead(f.number, a.last)) {
		if a.epoch == f.epoch {
			a.skip(f)
		}
		return // it is of other calls, or over
	}
	a.remember(f)
}

// stop ends a call because another rank has aborted it.
func (x *Execution) stop(f *abortMsg) {
	if x.failed != nil { // and a user's function has its buffers
		return
	}
	x.aborted = true
	err := f.error()
	if !x.begun {
		again := *f
		again.sender = x.e.engine.Rank()
		x.sendLater(&again)
		x.e.dequeue(x)
		if silent := x.silent(); len(silent) > 0 { // the rank that has aborted it has waited for them, or for one that has
			err = fmt.Errorf("%w; nothing has ever come from %s", err, describeRanks(silent))
		}
		x.end(err)
		return
	}
	x.failed = err
	x.cancelAll()
	switch {
	case x.computing == 0:
		x.end(err)
	case x.CancelUser != nil:
		x.CancelUser(err)
	}
}

// error is that of a call that an abort has ended.
func (f *abortMsg) error() error {
	return &CallFailedError{Rank: f.rank, Collective: f.collective, Comm: f.comm, Number: f.number, Cause: f.cause}
}

// ahead reports whether the number of a call comes after that of another. Numbers come
// round.
func ahead(number, last int) bool {
	d := distance(number, last)
	return d > 0 && d < Tags/2
}

func distance(number, last int) int {
	return ((number-last)%Tags + Tags) % Tags
}

// remember keeps an abort of a call that is still to be made. If there is no room, the abort
// of the latest call is dropped.
func (a *agreement) remember(f *abortMsg) {
	if slices.ContainsFunc(a.aborts, func(g abortMsg) bool { return g.number == f.number && g.epoch == f.epoch }) {
		return
	}
	if len(a.aborts) < maxAborts {
		a.aborts = append(a.aborts, *f)
		return
	}
	last := 0
	for i := range a.aborts {
		if distance(a.aborts[i].number, a.last) > distance(a.aborts[last].number, a.last) {
			last = i
		}
	}
	if distance(f.number, a.last) < distance(a.aborts[last].number, a.last) {
		a.aborts[last] = *f
	}
}

// byOrder is what is kept of calls in the communicator whose messages match by their order, of which there is one: the
// world, with FPGAs in it.
type byOrder struct {
	comm uint32
	last int // number of the call that was made last; 0: none was
	// aborts are those of the next calls. A member whose peer is in a dead end fails them at once, before others make
	// them.
	aborts []abortMsg
}

// remember keeps an abort of one of the next calls because of a lost peer. The other causes concern the call at the
// rank that aborted it: the program may go on there with a call that the others make as well. There is no epoch, so the
// abort may be of an earlier program, if that made as many calls and its packets are still in transit. Before the first
// call of a program, none is kept.
func (b *byOrder) remember(f *abortMsg) {
	if f.cause != CausePeerLost || b.last == 0 || f.comm != b.comm || !ahead(f.number, b.last) ||
		len(b.aborts) == maxAborts {
		return
	}
	if !slices.ContainsFunc(b.aborts, func(g abortMsg) bool { return g.number == f.number }) {
		b.aborts = append(b.aborts, *f)
	}
}

// begin notes a call that is made, and returns its abort or nil.
func (b *byOrder) begin(x *Execution) (found *abortMsg) {
	if x.Call.Ranks == 1 {
		return nil
	}
	b.comm, b.last = x.Comm, x.Tag
	b.aborts = slices.DeleteFunc(b.aborts, func(f abortMsg) bool {
		if f.number == x.Tag && slices.Contains(x.Members, f.sender) {
			found = &f
		}
		return !ahead(f.number, x.Tag)
	})
	return found
}

// pendingAbort returns the abort of a call that came before the call was made, or nil. Aborts
// of earlier calls are dropped.
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
		return !ahead(f.number, x.Tag)
	})
	return found
}

// endAborted ends a call that begins and of which an abort has come already.
func (x *Execution) endAborted(f *abortMsg) {
	if a := x.agreement(); a != nil {
		a.skip(f)
	}
	x.aborted, x.begun = true, true // in the turn of its order, if it has one
	x.failed = f.error()
	x.end(x.failed)
}
