package attach

import (
	"slices"
	"sync"
)

// watchLen is how many operations a watcher has at most: it examines all of
// them when one has ended, and each watcher costs a goroutine.
const watchLen = 64

// watcher sees operations end. One goroutine for each of 65,536 operations
// would cost more memory than the operations do, and examining all of them
// whenever one ends more time.
type watcher struct {
	s    *session
	wake chan struct{}

	mu  sync.Mutex
	ops []*operation
}

// watch gives an operation that runs to a watcher that has room. Only the
// reading goroutine calls it.
func (s *session) watch(op *operation) {
	if s.current == nil || !s.current.add(op) {
		s.current = nil
		for _, w := range s.watchers {
			if w.add(op) {
				s.current = w
				break
			}
		}
	}
	if s.current == nil {
		w := &watcher{s: s, wake: make(chan struct{}, 1)}
		s.watchers = append(s.watchers, w)
		s.current = w
		w.add(op)
		s.spawn(w.run)
	}
}

// add adds an operation, if there is room.
func (w *watcher) add(op *operation) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.ops) == watchLen {
		return false
	}
	w.ops = append(w.ops, op)
	op.watcher = w
	op.dev.Notify(w.wake) // under the lock: it may have ended, and is freed then
	if len(w.ops) == 1 {
		notify(w.wake) // so that it carries messages, too
	}
	return true
}

// cancel asks for an operation to be canceled, if it is there.
func (w *watcher) cancel(op *operation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Contains(w.ops, op) {
		op.dev.Cancel()
	}
}

// take removes an operation and reports whether it was there. Nothing else ends
// it from then on.
func (w *watcher) take(op *operation) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.ops, op)
	if i >= 0 {
		w.remove(i)
	}
	return i >= 0
}

func (w *watcher) remove(i int) {
	last := len(w.ops) - 1
	w.ops[i] = w.ops[last]
	w.ops[last] = nil
	w.ops = w.ops[:last]
}

// run answers what has ended, until the session ends.
func (w *watcher) run() {
	ended := make([]*operation, 0, watchLen)
	for {
		if w.wait() != nil {
			return
		}
		ended = w.collect(ended[:0])
		for i, op := range ended {
			w.s.out.putNow(op)
			ended[i] = nil
		}
	}
}

// wait waits until some have ended, and carries messages meanwhile if there are
// any to wait for.
func (w *watcher) wait() error {
	w.mu.Lock()
	idle := len(w.ops) == 0
	w.mu.Unlock()
	if !idle {
		return w.s.dev.Await(w.s.ctx, w.wake)
	}
	return w.s.stream.Await(w.s.ctx, w.wake)
}

// collect removes what has ended.
func (w *watcher) collect(ended []*operation) []*operation {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := 0; i < len(w.ops); {
		op := w.ops[i]
		st, ok, err := op.dev.Test()
		if !ok {
			i++
			continue
		}
		w.remove(i)
		op.finish(&st, false, err)
		ended = append(ended, op)
	}
	return ended
}
