package poller

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Watch is a descriptor that is watched.
type Watch struct {
	p     *poller
	id    int32
	fd    int
	h     Handler
	armed atomic.Bool
	again time.Duration // when PollAgain is due, or 0; guarded by p.mu
	// registered: the kernel knows it, and calls the epoll instance for all that arrives.
	registered bool

	// busy is held while h is called, and guards removed.
	busy    sync.Mutex
	removed bool
}

// poller is the process's only one. It is made when it is first needed, and
// stays; its goroutine runs while there are watches. Go's poller waits for its epoll
// instance, which is itself a descriptor, so that it needs no thread. The runtime would
// check a goroutine in a blocking system call every 20 µs.
type poller struct {
	epfd  int
	file  *os.File
	raw   syscall.RawConn
	armed atomic.Int32 // counts the watches that are
	mu    sync.Mutex
	// watches are known to the kernel by a number, and not by their address or
	// by a descriptor that may have been closed.
	watches map[int32]*Watch
	running bool // the goroutine; guarded by mu
	lastID  int32
	timer   timer
}

var process = sync.OnceValues(func() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making an epoll instance: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // has os.NewFile hand it to Go's poller
		unix.Close(fd)
		return nil, fmt.Errorf("making an epoll instance: %w", err)
	}
	file := os.NewFile(uintptr(fd), "epoll")
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("making an epoll instance: %w", err)
	}
	p := &poller{epfd: fd, file: file, raw: raw, watches: map[int32]*Watch{}}
	if err := p.timer.init(fd); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("making a timer: %w", err)
	}
	return p, nil
})

// Add makes a descriptor known. It is not watched before Arm.
func Add(fd int, h Handler) (*Watch, error) {
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
	w := &Watch{p: p, id: p.lastID, fd: fd, h: h, registered: true}
	if err := unix.EpollCtl(p.epfd, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLONESHOT, Fd: w.id}); err != nil {
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

// Arm has Ready called when the descriptor is readable, at once if it is. It must
// not be called after Remove, nor at the same time as itself or Unregister.
func (w *Watch) Arm() error {
	if !w.armed.Swap(true) {
		w.p.armed.Add(1)
	}
	op := unix.EPOLL_CTL_MOD
	if !w.registered {
		op = unix.EPOLL_CTL_ADD
	}
	err := unix.EpollCtl(w.p.epfd, op, w.fd, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT, Fd: w.id})
	if err != nil {
		w.disarmed()
		return err
	}
	w.registered = true
	return nil
}

// Unregister has the kernel forget a descriptor that is not armed, until the next Arm. As long as it is
// registered, each datagram takes its sender 0.2 µs more on loopback, also if nothing waits for it.
func (w *Watch) Unregister() {
	if w.registered {
		w.registered = false
		_ = unix.EpollCtl(w.p.epfd, unix.EPOLL_CTL_DEL, w.fd, nil) // it was added
	}
}

// disarmed notes that it is not armed any longer.
func (w *Watch) disarmed() {
	if w.armed.Swap(false) {
		w.p.armed.Add(-1)
	}
}

// Remove ends it. When it returns, the handler is not being called, and never
// will be. The descriptor must still be open, and the handler must not call it.
func (w *Watch) Remove() {
	w.p.mu.Lock()
	delete(w.p.watches, w.id)
	w.p.timer.remove(w)
	if len(w.p.watches) == 0 {
		_ = w.p.file.SetReadDeadline(time.Unix(1, 0)) // run ends
	}
	w.p.mu.Unlock()
	_ = unix.EpollCtl(w.p.epfd, unix.EPOLL_CTL_DEL, w.fd, nil) // unless it is unregistered
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

// PollOnce calls the handlers of readable descriptors, on the caller's goroutine, and returns
// how many. It is for callers that keep a processor from the goroutine that would
// call them.
func PollOnce() int {
	p, err := process()
	if err != nil || p.armed.Load() == 0 {
		return 0
	}
	var events [8]unix.EpollEvent
	n, _ := unix.EpollWait(p.epfd, events[:], 0)
	p.serve(events[:max(n, 0)])
	return max(n, 0)
}

// serve calls the handlers of what is readable.
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
			w.call(Handler.Ready)
		}
	}
}

// call calls the handler, unless the watch was removed.
func (w *Watch) call(what func(Handler) time.Duration) {
	w.busy.Lock()
	defer w.busy.Unlock()
	if w.removed {
		return
	}
	if again := what(w.h); again > 0 {
		w.p.mu.Lock()
		w.p.timer.add(w, again)
		w.p.mu.Unlock()
	}
}
