package progress

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// timerID is the timer's number in the epoll instance; no watch has it.
const timerID = 0

// timer has watches called again. It is a timer of the kernel and not of the Go runtime: to move it takes a system call,
// and no thread is woken as long as it is moved before it expires. A thread that waits for the next timer of the runtime
// wakes up when that was due, although it has been moved.
type timer struct {
	fd      int
	pending []*Watch      // those that are to be called again
	next    time.Duration // when it expires, or 0
}

// init has the epoll instance wait for the timer.
func (t *timer) init(epfd int) (err error) {
	if t.fd, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return err
	}
	return unix.EpollCtl(epfd, unix.EPOLL_CTL_ADD, t.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: timerID})
}

// after has a watch called after d, and returns when that is.
func (w *Watch) after(d time.Duration) time.Duration {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	if w.again == 0 {
		w.p.timer.pending = append(w.p.timer.pending, w)
	}
	w.p.timer.move(w, d)
	return w.again
}

// postpone has a watch called after d, if it is to be called again at all.
func (w *Watch) postpone(d time.Duration) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	if w.again != 0 {
		w.p.timer.move(w, d)
	}
}

// move has a watch called after d, and not when it was due before.
func (t *timer) move(w *Watch, d time.Duration) {
	first := w.again != 0 && w.again == t.next
	now := Clock()
	w.again = now + d
	if first || t.next == 0 || w.again < t.next {
		t.set(now)
	}
}

// remove has a watch not called again.
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

// expired calls all watches that are due.
func (p *poller) expired() {
	for now := Clock(); ; {
		p.mu.Lock()
		i := slices.IndexFunc(p.timer.pending, func(w *Watch) bool { return w.again <= now })
		if i < 0 {
			p.timer.set(now)
			p.mu.Unlock()
			return
		}
		w := p.timer.pending[i]
		p.timer.remove(w)
		p.mu.Unlock()
		w.call(false)
	}
}
