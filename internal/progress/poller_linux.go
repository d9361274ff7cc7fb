package progress

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/ctxerr"
)

// watch implements Watch for the process's poller.
type watch struct {
	poller     *poller
	fd         int // -1 if the watch only makes timed calls of due
	onDue      func(readable bool) (again time.Duration)
	armed      atomic.Bool
	nextCallAt time.Duration // time of the next timed call of due, or 0; guarded by p.mu
	// registered is set while the descriptor is in the kernel's set, in which case the kernel reports every
	// event to the epoll instance.
	registered bool

	// callMu is held while the function due runs. It guards the field removed.
	callMu  sync.Mutex
	removed bool
}

// poller is the only poller of the process. It is created when it is first needed and never destroyed; its
// goroutine runs only while there are watches. Go's poller waits for the epoll instance, which is itself a
// descriptor, so the goroutine needs no thread while it waits. A goroutine in a blocking system call would be
// checked by the runtime every 20 µs. The poller reads no descriptor except the one of its timer.
type poller struct {
	epfd  int
	file  *os.File
	raw   syscall.RawConn
	armed atomic.Int32 // number of armed watches
	mu    sync.Mutex
	// watches maps descriptors to watches. An event of a closed descriptor may be attributed to the next
	// descriptor with the same number; the resulting poll then finds nothing.
	watches map[int32]*watch
	running bool // whether the goroutine exists; guarded by mu
	timer   timer
}

var processPoller = sync.OnceValues(func() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err == nil {
		err = unix.SetNonblock(fd, true) // so that os.NewFile registers it with Go's poller
	}
	if err != nil {
		return nil, fmt.Errorf("making an epoll instance: %w", err)
	}
	p := &poller{epfd: fd, file: os.NewFile(uintptr(fd), "epoll"), watches: map[int32]*watch{}}
	if p.raw, err = p.file.SyscallConn(); err == nil {
		err = p.timer.init(fd)
	}
	if err != nil {
		return nil, fmt.Errorf("making the timer of an epoll instance: %w", err)
	}
	return p, nil
})

// NewWatch registers a descriptor. The poller does not watch it before Arm is called. due is called once after
// each call of Arm, when the descriptor becomes readable, and again whenever the time that it last returned, if
// positive, has passed. due must be fast.
func NewWatch(fd int, due func(readable bool) (again time.Duration)) (Watch, error) {
	p, err := processPoller()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w := &watch{poller: p, fd: fd, onDue: due, registered: true}
	if err := w.control(unix.EPOLL_CTL_ADD, 0); err != nil {
		return nil, fmt.Errorf("watching a descriptor: %w", err)
	}
	p.watches[int32(fd)] = w
	if !p.running {
		_ = p.file.SetReadDeadline(time.Time{}) // cannot fail: Go's poller has accepted the file
		p.running = true
		go p.run()
	}
	return w, nil
}

func (w *watch) control(op int, events uint32) error {
	return unix.EpollCtl(w.poller.epfd, op, w.fd, &unix.EpollEvent{Events: events | unix.EPOLLONESHOT, Fd: int32(w.fd)})
}

// Arm implements Watch.
func (w *watch) Arm() error {
	if !w.armed.Swap(true) {
		w.poller.armed.Add(1)
	}
	op := unix.EPOLL_CTL_MOD
	if !w.registered {
		op = unix.EPOLL_CTL_ADD
	}
	if err := w.control(op, unix.EPOLLIN); err != nil {
		w.disarm()
		return err
	}
	w.registered = true
	return nil
}

func (w *watch) unregister() {
	if w.registered {
		w.registered = false
		_ = w.control(unix.EPOLL_CTL_DEL, 0) // cannot fail: the descriptor has been added
	}
}

// disarm records that the watch is no longer armed.
func (w *watch) disarm() {
	if w.armed.Swap(false) {
		w.poller.armed.Add(-1)
	}
}

// Remove implements Watch.
func (w *watch) Remove() {
	w.poller.mu.Lock()
	delete(w.poller.watches, int32(w.fd))
	w.poller.timer.remove(w)
	if len(w.poller.watches) == 0 {
		_ = w.poller.file.SetReadDeadline(time.Unix(1, 0)) // makes run return
	}
	w.poller.mu.Unlock()
	_ = w.control(unix.EPOLL_CTL_DEL, 0) // fails if the descriptor is not registered
	w.disarm()
	w.callMu.Lock()
	defer w.callMu.Unlock()
	w.removed = true
}

// run is the poller's goroutine. It exits when the last watch is removed.
func (p *poller) run() {
	var events [64]unix.EpollEvent
	n := 0
	wait := func(uintptr) bool {
		var err error
		n, err = unix.EpollWait(p.epfd, events[:], 0)
		if err != nil && err != unix.EINTR { // nothing else closes the descriptor
			panic(fmt.Sprintf("epoll_wait: %v", err))
		}
		return n > 0 || err != nil
	}
	for {
		if err := p.raw.Read(wait); errors.Is(err, os.ErrDeadlineExceeded) {
			if p.stopIfUnused() {
				return
			}
			continue
		} else if err != nil {
			panic(fmt.Sprintf("waiting for an epoll instance: %v", err)) // nothing else closes the file
		}
		p.handleEvents(events[:max(n, 0)])
		// Yield, so that the goroutines that were woken up here run before the next wait.
		runtime.Gosched()
	}
}

// stopIfUnused records that the goroutine exits and returns true. If a watch has been added in the meantime, it
// returns false.
func (p *poller) stopIfUnused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = len(p.watches) > 0
	if p.running {
		_ = p.file.SetReadDeadline(time.Time{})
	}
	return !p.running
}

// serveWatches serves the watches whose descriptors are readable, and returns their number. It runs on the goroutine of
// a caller, which uses it while it keeps the poller's goroutine from running.
func serveWatches() int {
	p, err := processPoller()
	if err != nil || p.armed.Load() == 0 {
		return 0
	}
	var events [8]unix.EpollEvent
	n, _ := unix.EpollWait(p.epfd, events[:], 0)
	p.handleEvents(events[:max(n, 0)])
	return max(n, 0)
}

// handleEvents handles the given events of the epoll instance.
func (p *poller) handleEvents(events []unix.EpollEvent) {
	for _, ev := range events {
		if int(ev.Fd) == p.timer.fd {
			p.onTimer()
			continue
		}
		p.mu.Lock()
		w := p.watches[ev.Fd]
		p.mu.Unlock()
		if w != nil {
			w.disarm()
			w.callDue(true)
		}
	}
}

// callDue calls the watch's function due unless the watch has been removed.
func (w *watch) callDue(readable bool) {
	w.callMu.Lock()
	defer w.callMu.Unlock()
	if w.removed {
		return
	}
	if again := w.onDue(readable); again > 0 {
		w.scheduleCall(again)
	}
}

// timer triggers the timed calls of watches. It is a kernel timer instead of a timer of the Go runtime: moving
// it takes a system call, but wakes up no thread as long as it is moved before it expires. A thread that waits
// for the runtime's next timer would wake up at the original time even if the timer had been moved.
type timer struct {
	fd      int
	pending []*watch      // watches that have a timed call
	next    time.Duration // time of expiry, or 0
}

// init creates the timer and adds it to the epoll instance.
func (t *timer) init(epfd int) (err error) {
	if t.fd, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return err
	}
	return unix.EpollCtl(epfd, unix.EPOLL_CTL_ADD, t.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(t.fd)})
}

// scheduleCall schedules a call of the watch's function due after the duration d. It returns the time of that call.
func (w *watch) scheduleCall(d time.Duration) time.Duration {
	w.poller.mu.Lock()
	defer w.poller.mu.Unlock()
	if w.nextCallAt == 0 {
		w.poller.timer.pending = append(w.poller.timer.pending, w)
	}
	w.poller.timer.reschedule(w, d)
	return w.nextCallAt
}

// postpone moves the watch's timed call, if there is one, to d from now. It wakes no thread.
func (w *watch) postpone(d time.Duration) {
	w.poller.mu.Lock()
	defer w.poller.mu.Unlock()
	if w.nextCallAt != 0 {
		w.poller.timer.reschedule(w, d)
	}
}

// reschedule reschedules the pending call of a watch to d from now.
func (t *timer) reschedule(w *watch, d time.Duration) {
	now := Clock()
	w.nextCallAt = now + d
	t.set(now)
}

// remove cancels the timed call of a watch, if any.
func (t *timer) remove(w *watch) {
	if w.nextCallAt != 0 {
		w.nextCallAt = 0
		t.pending = slices.DeleteFunc(t.pending, func(v *watch) bool { return v == w })
	}
}

// set sets the timer to the time of the earliest timed call.
func (t *timer) set(now time.Duration) {
	var next time.Duration
	for _, w := range t.pending {
		if next == 0 || w.nextCallAt < next {
			next = w.nextCallAt
		}
	}
	if next == t.next {
		return
	}
	var in unix.ItimerSpec // zero stops the timer
	if t.next = next; next != 0 {
		in.Value = unix.NsecToTimespec(max(int64(next-now), 1))
	}
	_ = unix.TimerfdSettime(t.fd, 0, &in, nil) // cannot fail: the descriptor and the time are valid
}

// onTimer makes all timed calls that are due by now.
func (p *poller) onTimer() {
	for now := Clock(); ; {
		p.mu.Lock()
		i := slices.IndexFunc(p.timer.pending, func(w *watch) bool { return w.nextCallAt <= now })
		if i < 0 {
			p.timer.set(now)
			p.mu.Unlock()
			return
		}
		w := p.timer.pending[i]
		p.timer.remove(w)
		p.mu.Unlock()
		w.callDue(false)
	}
}

// heartbeat returns an error unless the poller detects a readable descriptor before ctx is done.
func heartbeat(ctx context.Context) error {
	fd, err := unix.Eventfd(1, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return fmt.Errorf("creating an eventfd: %w", err)
	}
	defer unix.Close(fd)
	found := make(chan struct{})
	w, err := NewWatch(fd, func(bool) time.Duration { close(found); return 0 })
	if err != nil {
		return err
	}
	defer w.Remove()
	if err := w.Arm(); err != nil {
		return fmt.Errorf("watching a descriptor: %w", err)
	}
	select {
	case <-found:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the poller did not notice an event: %w", ctxerr.Cause(ctx))
	}
}
