package progress

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Shared is implemented by event sources that serve a whole process. Every caller that polls also polls them, whichever
// event it waits for.
type Shared interface {
	// Visit polls unless another goroutine is already doing so, and reports whether it found something. It must
	// not block.
	Visit() bool
}

// shared lists the registered values of type Shared. The slice is replaced on every change.
var (
	sharedMu sync.Mutex
	shared   atomic.Pointer[[]Shared]
)

// RegisterShared registers the source v, which polling callers visit from then on.
func RegisterShared(v Shared) {
	sharedMu.Lock()
	defer sharedMu.Unlock()
	list := append(slices.Clone(allShared()), v)
	shared.Store(&list)
}

// UnregisterShared unregisters the source v. A caller that is already polling may visit v once more.
func UnregisterShared(v Shared) {
	sharedMu.Lock()
	defer sharedMu.Unlock()
	list := slices.DeleteFunc(slices.Clone(allShared()), func(s Shared) bool { return s == v })
	shared.Store(&list)
}

func allShared() []Shared {
	if list := shared.Load(); list != nil {
		return *list
	}
	return nil
}

// visitShared visits all Shareds and reports whether any of them found something. An event found by one Shared may
// concern another one. Because the caller is about to yield, visitShared visits all Shareds before the last successful
// one once more.
func visitShared() (found bool) {
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

// background is set while a caller of PollShared polls on an oversubscribed host. pollingCallers does not count that
// caller, so it never keeps another caller from polling.
var background atomic.Bool

// Poll polls until done returns true or sleeping becomes better than polling. If the caller should now sleep,
// Poll returns how long it has polled; otherwise, it returns 0.
func (p *SpinPolicy) Poll(done func() bool) (polled time.Duration) {
	var spin Spin
	if !p.Begin(&spin) {
		return 0
	}
	for !done() {
		if spin.Polled(false) && !spin.Continue(Clock()) {
			break
		}
	}
	return spin.End()
}

// PollShared polls all Shareds until c has a value or sleeping becomes better than polling. It returns false if other
// callers poll instead; on an oversubscribed host, it returns false as soon as another caller polls. now returns the
// time on any clock. polled is the result of Spin.End.
func (p *SpinPolicy) PollShared(now func() time.Duration, c <-chan struct{}) (polled time.Duration, ok bool) {
	var spin Spin
	switch {
	case !p.oversubscribed:
		if !p.Begin(&spin) {
			return 0, false
		}
		defer func() { polled = spin.End() }()
	case pollingCallers.Load() > 0 || !background.CompareAndSwap(false, true):
		return 0, false
	default:
		spin = p.spin()
		spin.yieldsSeldom = true
		defer background.Store(false)
	}
	for len(c) == 0 {
		found := visitShared()
		if p.oversubscribed && pollingCallers.Load() > 0 {
			return 0, false
		}
		if spin.Polled(found) && !spin.Continue(now()) {
			break
		}
	}
	return polled, true
}
