package steps

import (
	"context"
	"errors"
	"sync"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// call is a collective call that is being carried out. It is an mpe.Op, and is used
// again when it has been freed.
type call struct {
	mpe.Collective
	dev       Poster
	algorithm string
	// limited: there are peers whose wire does not carry everything; byOrder: to
	// some of them messages meet by their order alone.
	limited, byOrder bool
	reduce           func(inout, in []byte)
	scratch          []byte
	// blankOut and blankIn are what messages without content are sent from and
	// received into.
	blankOut, blankIn [protocol.WordLen]byte
	// wake is told of ends while somebody waits.
	wake chan struct{}

	mu       sync.Mutex
	progress *coll.Progress
	under    []message
	// local are steps that have begun, concern nobody else and have not been done.
	local  []numbered
	notify chan<- struct{}
	// failed is why no step begins any longer: the call ends with it when all that
	// is under way has come to its end.
	failed error
	ended  bool
	err    error // how it has ended
}

var _ mpe.Op = (*call)(nil)

// numbered is a step with its number.
type numbered struct {
	coll.Step
	number int
}

// message is a step that waits for its operation.
type message struct {
	numbered
	op mpe.Op
}

// advance does all that can be done without waiting, and reports whether the call has
// ended. If not, there is an operation under way.
func (x *call) advance() bool {
	for !x.ended {
		x.begin()
		if x.failed == nil && len(x.local) > 0 {
			x.work()
			continue
		}
		if x.harvest() {
			continue
		}
		if len(x.under) > 0 {
			return false
		}
		x.end()
	}
	return true
}

// begin begins all steps that can. What concerns nobody else is left for later: the
// messages go first.
func (x *call) begin() {
	for x.failed == nil {
		step, number, ok := x.progress.Next()
		if !ok {
			return
		}
		s := numbered{*step, number}
		switch step.Kind {
		case coll.StepSend, coll.StepRecv:
			x.post(&s)
		default:
			x.local = append(x.local, s)
		}
	}
}

// harvest takes what has ended, and reports whether there was anything.
func (x *call) harvest() bool {
	kept := x.under[:0]
	for i := range x.under {
		m := &x.under[i]
		if st, ended, err := m.op.Test(); ended {
			x.complete(m, &st, err)
			continue
		}
		kept = append(kept, *m)
	}
	some := len(kept) < len(x.under)
	clear(x.under[len(kept):])
	x.under = kept
	if some && x.failed != nil {
		x.takeBack()
	}
	return some
}

// complete notes how an operation has ended.
func (x *call) complete(m *message, st *mpe.Status, err error) {
	m.op.Free()
	if err == nil {
		err = m.check(st)
	}
	switch {
	case err == nil:
		x.progress.Done(m.number)
	case x.failed == nil:
		x.fail(&m.numbered, err)
	}
}

// fail has the call end because a step has failed. What is under way is not touched.
func (x *call) fail(s *numbered, err error) {
	e := &mpe.StepError{Collective: x.Call.Collective, Algorithm: x.algorithm, Number: s.number, Kind: s.Kind, Peer: -1, Bytes: s.Len, Err: err}
	if (s.Sends() || s.Receives()) && s.Peer >= 0 {
		e.Peer = x.Members[s.Peer]
	}
	x.failed = e
}

// takeBack asks for everything to be taken back.
func (x *call) takeBack() {
	for i := range x.under {
		x.under[i].op.Cancel()
	}
}

// end is called when nothing is under way and nothing can begin.
func (x *call) end() {
	x.ended = true
	if !x.progress.Over() {
		if x.err = x.failed; x.err == nil {
			x.err = x.refuse("its schedule waits for what is never done")
		}
	}
	if x.notify != nil {
		tell(x.notify)
		x.notify = nil
	}
	x.Send, x.Recv = nil, nil
}

// Wait waits for the call to end. When ctx ends first, all its messages are taken back,
// and the error is a *mpe.StepError of the oldest of them, with the *mpe.WaitError in it.
func (x *call) Wait(ctx context.Context) (mpe.Status, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.advance() {
		return mpe.Status{}, x.err
	}
	x.tellOf(x.wake)
	for !x.advance() {
		x.mu.Unlock()
		err := x.dev.Await(ctx, x.wake)
		x.mu.Lock()
		if err != nil {
			x.withdraw(ctx)
			break
		}
	}
	return mpe.Status{}, x.err
}

// withdraw ends the call because ctx has ended.
func (x *call) withdraw(ctx context.Context) {
	for !x.advance() {
		var others []int
		first := x.failed == nil
		for i := range x.under {
			m := &x.under[i]
			st, err := m.op.Wait(ctx) // at once
			if err != nil && x.failed != nil && first {
				others = append(others, x.Members[m.Peer])
			}
			x.complete(m, &st, err)
		}
		clear(x.under)
		x.under = x.under[:0]
		if e, ok := errors.AsType[*mpe.StepError](x.failed); ok && first {
			e.Others = others
		}
	}
}

// Test reports whether the call has ended, and begins what can begin.
func (x *call) Test() (mpe.Status, bool, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	ended := x.advance()
	return mpe.Status{}, ended, x.err
}

// Cancel has no more steps begin, and takes back those that are under way. The call
// ends with mpe.ErrCancelled unless it was complete. The other ranks are not told.
func (x *call) Cancel() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended || x.failed != nil {
		return
	}
	x.failed = mpe.ErrCancelled
	x.takeBack()
}

// Notify has a value sent to c whenever one of the call's messages has ended: there may
// be steps to begin then. Whoever gets it looks again, with Test.
func (x *call) Notify(c chan<- struct{}) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.ended {
		x.tellOf(c)
	} else if c != nil {
		tell(c)
	}
}

func (x *call) tellOf(c chan<- struct{}) {
	x.notify = c
	for i := range x.under {
		x.under[i].op.Notify(c)
	}
}

// tell sends a value to c, if it has room.
func tell(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Free gives the memory of a call that has ended back.
func (x *call) Free() {
	x.mu.Lock()
	ended := x.ended
	x.mu.Unlock()
	if ended {
		x.reset()
	}
}

// reset makes a call that nobody uses ready for another one.
func (x *call) reset() {
	clear(x.local[:cap(x.local)])
	*x = call{wake: x.wake, scratch: x.scratch, under: x.under[:0], local: x.local[:0]}
	calls.Put(x)
}
