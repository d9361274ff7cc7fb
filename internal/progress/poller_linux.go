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

// Watch is a descriptor that the process's poller watches: from Arm until it has become readable once. It is for
// descriptors that are read by callers that wait for what they bring, and have to be watched in the meantime only. Go's own
// poller has no such thing: it wakes a thread for all that arrives, also while a caller polls for it anyway.
type Watch struct {
	p  *poller
	id int32
	fd int
	// due is called when the descriptor is readable, once after each Arm, and when the time is over that due has
	// returned last, if that was more than 0. It must take little time: other descriptors wait.
	due   func(readable bool) (again time.Duration)
	armed atomic.Bool
	again time.Duration // when due is to be called again, or 0; guarded by p.mu
	// registered: the kernel knows it, and calls the epoll instance for all that arrives.
	registered bool

	// busy is held while due is called, and guards removed.
	busy    sync.Mutex
	removed bool
}

// poller is the process's only one. It is made when it is first needed, and stays; its goroutine runs while there are
// watches. Go's poller waits for its epoll instance, which is itself a descriptor, so that it needs no thread. The
// runtime would check a goroutine in a blocking system call every 20 µs. It reads no descriptor but its timer's.
type poller struct {
	epfd  int
	file  *os.File
	raw   syscall.RawConn
	armed atomic.Int32 // counts the watches that are
	mu    sync.Mutex
	// watches are known to the kernel by a number, and not by their address or by a descriptor that may have been closed.
	watches map[int32]*Watch
	running bool // the goroutine; guarded by mu
	lastID  int32
	timer   timer
}

var process = sync.OnceValues(func() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err == nil {
		err = unix.SetNonblock(fd, true) // has os.NewFile hand it to Go's poller
	}
	if err != nil {
		return nil, fmt.Errorf("making an epoll instance: %w", err)
	}
	p := &poller{epfd: fd, file: os.NewFile(uintptr(fd), "epoll"), watches: map[int32]*Watch{}}
	if p.raw, err = p.file.SyscallConn(); err == nil {
		err = p.timer.init(fd)
	}
	if err != nil {
		return nil, fmt.Errorf("making the timer of an epoll instance: %w", err)
	}
	return p, nil
})

// NewWatch makes a descriptor known, of which ready is called when it is readable, once after each Arm. It is not watched
// before.
func NewWatch(fd int, ready func()) (*Watch, error) {
	return newWatch(fd, func(bool) time.Duration { ready(); return 0 })
}

func newWatch(fd int, due func(readable bool) time.Duration) (*Watch, error) {
	p, err := process()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastID++
	for p.watches[p.lastID] != nil || p.lastID == timerID { // after 2³² of them
		p.lastID++
	}
	w := &Watch{p: p, id: p.lastID, fd: fd, due: due, registered: true}
	if err := w.control(unix.EPOLL_CTL_ADD, 0); err != nil {
		return nil, fmt.Errorf("watching a descriptor: %w", err)
	}
	p.watches[w.id] = w
	if !p.running {
		_ = p.file.SetReadDeadline(time.Time{}) // Go's poller has accepted the file
		p.running = true
		go p.run()
	}
	return w, nil
}

func (w *Watch) control(op int, events uint32) error {
	return unix.EpollCtl(w.p.epfd, op, w.fd, &unix.EpollEvent{Events: events | unix.EPOLLONESHOT, Fd: w.id})
}

// Arm has the descriptor watched until it is readable. It must not be called after Remove, nor at the same time as itself
// or unregister.
func (w *Watch) Arm() error {
	if !w.armed.Swap(true) {
		w.p.armed.Add(1)
	}
	op := unix.EPOLL_CTL_MOD
	if !w.registered {
		op = unix.EPOLL_CTL_ADD
	}
	if err := w.control(op, unix.EPOLLIN); err != nil {
		w.disarmed()
		return err
	}
	w.registered = true
	return nil
}

// unregister has the kernel forget a descriptor that is not armed, until the next Arm. As long as it is registered, each
// datagram takes its sender 0.2 µs more on loopback, also if nothing waits for it.
func (w *Watch) unregister() {
	if w.registered {
		w.registered = false
		_ = w.control(unix.EPOLL_CTL_DEL, 0) // it was added
	}
}

// disarmed notes that it is not armed any longer.
func (w *Watch) disarmed() {
	if w.armed.Swap(false) {
		w.p.armed.Add(-1)
	}
}

// Remove ends it. When it returns, due is not being called, and never will be. The descriptor must still be open, and due
// must not call it.
func (w *Watch) Remove() {
	w.p.mu.Lock()
	delete(w.p.watches, w.id)
	w.p.timer.remove(w)
	if len(w.p.watches) == 0 {
		_ = w.p.file.SetReadDeadline(time.Unix(1, 0)) // run ends
	}
	w.p.mu.Unlock()
	_ = w.control(unix.EPOLL_CTL_DEL, 0) // unless it is unregistered
	w.disarmed()
	w.busy.Lock()
	defer w.busy.Unlock()
	w.removed = true
}

// run is the goroutine. It ends with the last watch.
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
			if p.unused() {
				return
			}
			continue
		} else if err != nil {
			panic(fmt.Sprintf("waiting for an epoll instance: %v", err)) // nor is the file
		}
		p.serve(events[:max(n, 0)])
		// Goroutines that this has woken run before the next wait.
		runtime.Gosched()
	}
}

// unused notes that the goroutine ends, and reports true, unless a watch was added meanwhile.
func (p *poller) unused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = len(p.watches) > 0
	if p.running {
		_ = p.file.SetReadDeadline(time.Time{})
	}
	return !p.running
}

// serveWatches serves the watches whose descriptors are readable, on the caller's goroutine, and returns how many. It is
// for callers that keep a processor from the goroutine that would.
func serveWatches() int {
	p, err := process()
	if err != nil || p.armed.Load() == 0 {
		return 0
	}
	var events [8]unix.EpollEvent
	n, _ := unix.EpollWait(p.epfd, events[:], 0)
	p.serve(events[:max(n, 0)])
	return max(n, 0)
}

// serve serves what is readable.
func (p *poller) serve(events []unix.EpollEvent) {
	for _, ev := range events {
		if ev.Fd == timerID {
			p.expired()
			continue
		}
		p.mu.Lock()
		w := p.watches[ev.Fd]
		p.mu.Unlock()
		if w != nil {
			w.disarmed()
			w.call(true)
		}
	}
}

// call calls due, unless the watch was removed.
func (w *Watch) call(readable bool) {
	w.busy.Lock()
	defer w.busy.Unlock()
	if w.removed {
		return
	}
	if again := w.due(readable); again > 0 {
		w.after(again)
	}
}

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

// heartbeat reports whether the poller is alive: whether it notices before ctx is done that something has become readable.
func heartbeat(ctx context.Context) error {
	fd, err := unix.Eventfd(1, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return fmt.Errorf("creating an eventfd: %w", err)
	}
	defer unix.Close(fd)
	found := make(chan struct{})
	w, err := NewWatch(fd, func() { close(found) })
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
		return fmt.Errorf("the poller has not noticed what arrived: %w", ctxerr.Of(ctx))
	}
}
