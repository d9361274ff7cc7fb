package mpe

import "slices"

// maxFailures bounds how many calls of a communicator that others have given up, and
// that were not made here yet, are remembered. An honest member is as far ahead as it
// has calls under way at a time.
const maxFailures = 64

// hear has a call fail that another rank has given up: the one under way, or one that is
// still to be made.
func (e *Engine) hear(f *failure) {
	for _, x := range e.callings {
		if x.Comm == f.comm && x.Tag == f.number && x.life() == f.life && !x.limits.ByOrder {
			if slices.Contains(x.Members, f.rank) {
				x.stop(f)
			}
			return
		}
	}
	a := e.agreements[f.comm]
	// What bears no life may be from before this program: it concerns no later call.
	if a == nil || f.life == 0 || !slices.Contains(a.members, f.rank) {
		return
	}
	if a.done && (a.life != f.life || !ahead(f.number, a.last)) {
		return // it is of other calls, or over
	}
	a.remember(f)
}

// stop ends a call because another rank has given it up.
func (x *calling) stop(f *failure) {
	if x.failed != nil { // and a user's function has its buffers
		return
	}
	x.told = true
	err := f.error()
	if !x.begun {
		x.e.withdraw(x)
		x.end(err)
		return
	}
	x.failed = err
	x.abandonAll()
	switch {
	case x.computing == 0:
		x.end(err)
	case x.CancelUser != nil:
		x.CancelUser(err)
	}
}

// error is that of a call which was given up.
func (f *failure) error() error {
	return &CallFailedError{Rank: f.rank, Collective: f.collective, Comm: f.comm, Number: f.number, Cause: f.cause}
}

// ahead reports whether the number of a call comes after that of another. Numbers come
// round.
func ahead(number, last int) bool {
	d := distance(number, last)
	return d > 0 && d < CollectiveTags/2
}

func distance(number, last int) int {
	return ((number-last)%CollectiveTags + CollectiveTags) % CollectiveTags
}

// remember keeps what was told of a call that is still to be made. Without room, what
// comes last gives way.
func (a *agreement) remember(f *failure) {
	if slices.ContainsFunc(a.failures, func(g failure) bool { return g.number == f.number && g.life == f.life }) {
		return
	}
	if len(a.failures) < maxFailures {
		a.failures = append(a.failures, *f)
		return
	}
	last := 0
	for i := range a.failures {
		if distance(a.failures[i].number, a.last) > distance(a.failures[last].number, a.last) {
			last = i
		}
	}
	if distance(f.number, a.last) < distance(a.failures[last].number, a.last) {
		a.failures[last] = *f
	}
}

// given is what was told of a call before it was made, or nil. What was told of earlier
// ones is forgotten.
func (x *calling) given() *failure {
	a := x.agreement()
	if a == nil || len(a.failures) == 0 || !a.done {
		return nil
	}
	var found *failure
	a.failures = slices.DeleteFunc(a.failures, func(f failure) bool {
		if f.number == x.Tag && f.life == a.life {
			found = &f
		}
		return !ahead(f.number, x.Tag)
	})
	return found
}

// givenUp ends a call that begins and that another rank has given up already.
func (x *calling) givenUp(f *failure) {
	x.told, x.begun = true, true // in the turn of its order, if it has one
	x.failed = f.error()
	x.end(x.failed)
}
