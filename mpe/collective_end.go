package mpe

import (
	"sort"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// CollectiveCount counts the calls of a collective that were carried out by an algorithm.
type CollectiveCount struct {
	Collective string `json:"collective"`
	Algorithm  string `json:"algorithm"`
	// Calls counts those that have begun, and Failures those of them that have failed.
	Calls    uint64 `json:"calls"`
	Failures uint64 `json:"failures,omitempty"`
	// Bytes is the sum of their Call.Bytes.
	Bytes uint64 `json:"bytes"`
}

// counted is the count of a call's algorithm.
func (e *Engine) counted(x *calling) *CollectiveCount {
	n := e.collectives[x.algorithm]
	if n == nil {
		n = &CollectiveCount{Collective: x.Call.Collective.String(), Algorithm: x.algorithm.Name}
		if e.collectives == nil {
			e.collectives = map[*coll.Algorithm]*CollectiveCount{}
		}
		e.collectives[x.algorithm] = n
	}
	return n
}

// collectiveCounts gives the counts in the order of their names.
func (e *Engine) collectiveCounts() []CollectiveCount {
	counts := make([]CollectiveCount, 0, len(e.collectives))
	for _, n := range e.collectives {
		counts = append(counts, *n)
	}
	sort.Slice(counts, func(i, j int) bool {
		a, b := &counts[i], &counts[j]
		return a.Collective < b.Collective || a.Collective == b.Collective && a.Algorithm < b.Algorithm
	})
	return counts
}

// abandonCall ends a call because its caller's context has ended. The error is that of
// its oldest message.
func (e *Engine) abandonCall(r *Request, cause error) {
	x := r.call
	if !x.begun {
		x = e.agreeing(x)
	}
	if x == nil || len(x.under) == 0 { // it waits for nobody
		e.endCall(r, cause)
		return
	}
	oldest := x.under[0]
	for _, u := range x.under {
		if u.id < oldest.id {
			oldest = u
		}
	}
	wait := e.waitError(oldest, cause)
	err := x.stepError(int(oldest.step), wait)
	for _, u := range x.under {
		if u != oldest && u.peer >= 0 {
			err.Others = append(err.Others, u.peer)
		}
	}
	e.endCall(r, err)
}

// endCall ends a call that has not, with err.
func (e *Engine) endCall(r *Request, err error) {
	x := r.call
	if x.begun {
		x.failed = err
		for len(x.under) > 0 {
			x.giveUp(x.under[len(x.under)-1], ErrCancelled)
		}
	} else {
		e.withdraw(x)
	}
	x.end(err)
}

// agreeing is the call by which the members of x's communicator agree, for which it
// waits, or nil.
func (e *Engine) agreeing(x *calling) *calling {
	if a := e.agreements[x.Comm]; a != nil {
		return a.call
	}
	return nil
}

// withdraw takes a call out of those that wait until the members have agreed. The
// agreement goes on.
func (e *Engine) withdraw(x *calling) {
	a := e.agreements[x.Comm]
	if a == nil {
		return
	}
	for i, w := range a.waiting {
		if w == x {
			a.waiting = append(a.waiting[:i], a.waiting[i+1:]...)
			return
		}
	}
}

// awaitComputed waits, without the lock, for a user's function to come to its end.
func (e *Engine) awaitComputed() {
	if e.computed == nil {
		e.computed = make(chan struct{})
	}
	c := e.computed
	e.mu.Unlock()
	<-c
	e.lock()
}
