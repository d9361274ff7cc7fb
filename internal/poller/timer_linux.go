package poller

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// timerID is the timer's number in the epoll instance; no watch has it.
const timerID = 0

// timer calls PollAgain. It is a timer of the kernel and not of the Go runtime: to move it takes a system
// call, and no thread is woken as long as it is moved before it expires. A thread that waits
// for the next timer of the runtime wakes up when that was due, although it has been moved.
type timer struct {
	fd      int
	pending []*Watch      // those with a time at which PollAgain is due
	next    time.Duration // when it expires, or 0
}

// init has the epoll instance wait for the timer.
func (t *timer) init(epfd int) (err error) {
	if t.fd, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return err
	}
	return unix.EpollCtl(epfd, unix.EPOLL_CTL_ADD, t.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: timerID})
}

var begun = time.Now()

// clock returns the time since begun.
func clock() time.Duration { return time.Since(begun) }

// add has PollAgain called after d.
func (t *timer) add(w *Watch, d time.Duration) {
	if w.again == 0 {
		t.pending = append(t.pending, w)
	}
	t.move(w, d)
}

// move has PollAgain called after d, and not when it was due before.
func (t *timer) move(w *Watch, d time.Duration) {
	first := w.again != 0 && w.again == t.next
	now := clock()
	w.again = now + d
	if first || t.next == 0 || w.again < t.next {
		t.set(now)
	}
}

// remove has PollAgain not called.
func (t *timer) remove(w *Watch) {
	if w.again != 0 {
		w.again = 0
		t.pending = slices.DeleteFunc(t.pending, func(v *Watch) bool { return v == w })
	}
}

// set has the timer expire when the first call is due.
func (t *timer) set(now time.Duration) {
	t.next = 0
	for _, w := range t.pending {
		if t.next == 0 || w.again < t.next {
			t.next = w.again
		}
	}
	var in unix.ItimerSpec // 0 stops it
	if t.next != 0 {
		in.Value = unix.NsecToTimespec(max(int64(t.next-now), 1))
	}
	_ = unix.TimerfdSettime(t.fd, 0, &in, nil) // it is a timer, and the time is valid
}

// due removes one that was due before now, and returns it, or nil.
func (t *timer) due(now time.Duration) *Watch {
	for _, w := range t.pending {
		if w.again <= now {
			t.remove(w)
			return w
		}
	}
	return nil
}

// expired calls PollAgain of all that are due.
func (p *poller) expired() {
	for now := clock(); ; {
		p.mu.Lock()
		w := p.timer.due(now)
		if w == nil {
			p.timer.set(now)
		}
		p.mu.Unlock()
		if w == nil {
			return
		}
		w.call(Handler.PollAgain)
	}
}

// Postpone has PollAgain called after d from now, if it is due at all.
func (w *Watch) Postpone(d time.Duration) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	if w.again != 0 {
		w.p.timer.move(w, d)
	}
}
