package poller

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// timerID is the timer's number in the epoll instance; no watch has it.
const timerID = 0

// entry is what the timer calls.
type entry struct {
	at   time.Duration // when it is due, or 0; guarded by poller.mu
	call func()
}

// timer calls PollAgain of watches, and the functions of Timers. It is a timer of the kernel and not of the Go runtime: to move it
// takes a system call, and no thread is woken as long as it is moved before it expires. A thread that waits
// for the next timer of the runtime wakes up when that was due, although it has been moved.
type timer struct {
	fd      int
	pending []*entry      // those that are due at some time
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

// reset has the entry called after d, and not when it was due before.
func (t *timer) reset(e *entry, d time.Duration) {
	if e.at == 0 {
		t.pending = append(t.pending, e)
	}
	first := e.at != 0 && e.at == t.next
	now := clock()
	e.at = now + d
	if first || t.next == 0 || e.at < t.next {
		t.set(now)
	}
}

// stop has the entry not called. The timer may expire when it was due, and then finds that nothing is.
func (t *timer) stop(e *entry) {
	if e.at != 0 {
		if e.at == t.next {
			t.next = 0
		}
		e.at = 0
		t.pending = slices.DeleteFunc(t.pending, func(v *entry) bool { return v == e })
	}
}

// set has the timer expire when the first entry is due.
func (t *timer) set(now time.Duration) {
	t.next = 0
	for _, e := range t.pending {
		if t.next == 0 || e.at < t.next {
			t.next = e.at
		}
	}
	var in unix.ItimerSpec // 0 stops it
	if t.next != 0 {
		in.Value = unix.NsecToTimespec(max(int64(t.next-now), 1))
	}
	_ = unix.TimerfdSettime(t.fd, 0, &in, nil) // it is a timer, and the time is valid
}

// due removes one that was due before now, and returns it, or nil.
func (t *timer) due(now time.Duration) *entry {
	for _, e := range t.pending {
		if e.at <= now {
			t.stop(e)
			return e
		}
	}
	return nil
}

// expired calls all entries that are due.
func (p *poller) expired() {
	for now := clock(); ; {
		p.mu.Lock()
		e := p.timer.due(now)
		if e == nil {
			p.timer.set(now)
		}
		p.mu.Unlock()
		if e == nil {
			return
		}
		e.call()
	}
}

// Postpone has PollAgain called no earlier than after d from now, if it is due at all.
func (w *Watch) Postpone(d time.Duration) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	if w.again.at != 0 && w.again.at < clock()+d {
		w.p.timer.reset(&w.again, d)
	}
}

// Timer calls a function at a time, as handlers are called.
type Timer struct {
	p     *poller
	entry entry
}

// NewTimer makes a timer that is not set.
func NewTimer(call func()) (*Timer, error) {
	p, err := process()
	if err != nil {
		return nil, err
	}
	return &Timer{p: p, entry: entry{call: call}}, nil
}

// Reset has the function called after d, and not when it was due before. It reports whether it was.
func (t *Timer) Reset(d time.Duration) bool {
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	set := t.entry.at != 0
	t.p.timer.reset(&t.entry, d)
	return set
}

// Stop has the function not called, but it may be being called. It reports whether it was due.
func (t *Timer) Stop() bool {
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	set := t.entry.at != 0
	t.p.timer.stop(&t.entry)
	return set
}
