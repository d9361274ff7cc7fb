package mpi

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// weak are collective calls under way that go on only while somebody looks at them
// (steps.Weak). The standard wants whoever waits for anything to carry them as well: the
// one that he waits for may itself wait for one of them, on another rank. So everybody
// who waits joins, and looks at all of them when he is woken.
type weak struct {
	some atomic.Bool // there are any
	mu   sync.Mutex
	ops  []mpe.Op
	// waiting are who waits. The first is told when there may be something to do, and
	// tells the others when one of the calls has ended.
	waiting []chan struct{}
}

// add takes a call that has begun.
func (w *weak) add(op mpe.Op) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ops = append(w.ops, op)
	w.some.Store(true)
	if len(w.waiting) > 0 {
		op.Notify(w.waiting[0])
	}
}

// remove takes a call out that has ended, before it is freed.
func (w *weak) remove(op mpe.Op) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ops = slices.DeleteFunc(w.ops, func(o mpe.Op) bool { return o == op })
	w.some.Store(len(w.ops) > 0)
}

// join has c told from now on. It may be called again.
func (w *weak) join(c chan struct{}) {
	if !w.some.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Contains(w.waiting, c) {
		return
	}
	w.waiting = append(w.waiting, c)
	if len(w.waiting) == 1 {
		w.notify(c)
	}
}

// leave ends join, if there was one.
func (w *weak) leave(c chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.waiting, c)
	if i < 0 {
		return
	}
	w.waiting = slices.Delete(w.waiting, i, i+1)
	switch {
	case i > 0:
	case len(w.waiting) > 0: // what c was told and has not looked at is his
		w.notify(w.waiting[0])
		wake(w.waiting[0])
	default:
		w.notify(nil)
	}
}

func (w *weak) notify(c chan<- struct{}) {
	for _, op := range w.ops {
		op.Notify(c)
	}
}

// look has all of them go on.
func (w *weak) look() {
	if !w.some.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	before := len(w.ops)
	w.ops = slices.DeleteFunc(w.ops, func(op mpe.Op) bool {
		_, ended, _ := op.Test()
		return ended
	})
	if len(w.ops) == before {
		return
	}
	w.some.Store(len(w.ops) > 0)
	for _, c := range w.waiting {
		wake(c)
	}
}

// wake sends a value to c, if it has room.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// wait is op.Wait, and carries the weak calls meanwhile. If op is one of them, listed is
// set.
func (p *process) wait(ctx context.Context, op mpe.Op, listed bool) (mpe.Status, error) {
	w := &p.weak
	if !w.some.Load() {
		return op.Wait(ctx)
	}
	c := wakers.Get().(chan struct{})
	defer wakers.Put(c)
	w.join(c)
	defer w.leave(c)
	if !listed {
		op.Notify(c)
	}
	for {
		w.look()
		if st, ended, err := op.Test(); ended {
			return st, err
		}
		if p.dev.Await(ctx, c) != nil {
			return op.Wait(ctx) // at once
		}
	}
}
