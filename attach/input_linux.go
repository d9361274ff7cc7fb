package attach

import (
	"errors"
	"runtime"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/poller"
)

// input reads a link and waits where there is nothing to read: for a while it
// looks, as a program does that waits for the daemon, and then the process's
// poller wakes it.
type input struct {
	l     *link
	watch *poller.Watch
	wake  chan struct{}
	gap   time.Duration // the smoothed time that a wait takes
}

func newInput(l *link) (*input, error) {
	in := &input{l: l, wake: make(chan struct{}, 1)}
	var err error
	in.watch, err = l.watch(in)
	return in, err
}

func (in *input) close() { in.watch.Remove() }

// Ready implements poller.Handler.
func (in *input) Ready() time.Duration {
	tell(in.wake)
	return 0
}

// Tend implements poller.Handler.
func (in *input) Tend() time.Duration { return 0 }

// Read reads what is there, and waits until there is something.
func (in *input) Read(b []byte) (int, error) {
	n, err := in.l.Read(b)
	if !errors.Is(err, errNothing) {
		return n, err
	}
	start := clock()
	if n, err = in.look(b, start); errors.Is(err, errNothing) {
		for errors.Is(err, errNothing) {
			if err := in.watch.Arm(); err != nil {
				return 0, err
			}
			<-in.wake
			n, err = in.l.Read(b)
		}
	}
	in.gap += (min(clock()-start, maxGap) - in.gap) / 4
	return n, err
}

// look reads for as long as that is better than to be woken.
func (in *input) look(b []byte, start time.Duration) (int, error) {
	if start < time.Duration(notBefore.Load()) || looking.Add(1) > mayLook {
		looking.Add(-1)
		return 0, errNothing
	}
	defer looking.Add(-1)
	budget := budgetFor(in.gap)
	for last := start; ; {
		runtime.Gosched()
		n, err := in.l.Read(b)
		if !errors.Is(err, errNothing) {
			return n, err
		}
		now := clock()
		if now-last > heldUp {
			notBefore.Store(int64(now + afterHeldUp))
			return 0, errNothing
		}
		if now-start >= budget {
			return 0, errNothing
		}
		last = now
	}
}
