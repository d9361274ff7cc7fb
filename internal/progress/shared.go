package progress

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Shared is polled by every caller of the process that polls, whatever it waits for.
type Shared interface {
	// Visit polls unless another goroutine does, and reports whether it has found something. It must not wait.
	Visit() bool
}

// shared are those of the process. The slice is replaced, not changed.
var (
	sharing sync.Mutex
	shared  atomic.Pointer[[]Shared]
)

// Share has v polled from now on.
func Share(v Shared) {
	sharing.Lock()
	defer sharing.Unlock()
	list := append(slices.Clone(allShared()), v)
	shared.Store(&list)
}

// Unshare has v polled no longer. It may be visited once more by each caller that polls.
func Unshare(v Shared) {
	sharing.Lock()
	defer sharing.Unlock()
	list := slices.DeleteFunc(slices.Clone(allShared()), func(s Shared) bool { return s == v })
	shared.Store(&list)
}

func allShared() []Shared {
	if list := shared.Load(); list != nil {
		return *list
	}
	return nil
}

// visit polls what is shared, and reports whether something was found. What one has found may be
// for another one, so those before it are polled once more: the caller is going to yield.
func visit() (found bool) {
	list, again := allShared(), 0
	for i, v := range list {
		if v.Visit() {
			found, again = true, i
		}
	}
	for _, v := range list[:again] {
		v.Visit()
	}
	return found
}

// background is set while a caller of PollShared polls on an oversubscribed host. It is not
// counted in polling, so that it never keeps another caller from that.
var background atomic.Bool

// Poll polls until done reports true, for as long as that is better than to be woken. It returns for how long it has
// polled if the caller is to sleep now.
func (p *SpinPolicy) Poll(done func() bool) (polled time.Duration) {
	var s Spin
	if !p.Begin(&s) {
		return 0
	}
	for !done() {
		if s.Polled() && !s.Continue(Clock()) {
			break
		}
	}
	return s.End()
}

// PollShared polls what is shared until c has a value, for as long as that is better than to
// be woken. It reports false if other callers poll instead: on an oversubscribed host as
// soon as there is one. Now is the time, on any clock. Polled is what Spin.End returns.
func (p *SpinPolicy) PollShared(now func() time.Duration, c <-chan struct{}) (polled time.Duration, ok bool) {
	var s Spin
	switch {
	case !p.oversubscribed:
		if !p.Begin(&s) {
			return 0, false
		}
		defer func() { polled = s.End() }()
	case polling.Load() > 0 || !background.CompareAndSwap(false, true):
		return 0, false
	default:
		s = p.spin()
		s.seldom = true
		defer background.Store(false)
	}
	for len(c) == 0 {
		s.found = visit() || s.found
		if p.oversubscribed && polling.Load() > 0 {
			return 0, false
		}
		if s.Polled() && !s.Continue(now()) {
			break
		}
	}
	return polled, true
}
