package poller

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Watch is a descriptor that is watched.
type Watch struct {
	p  *poller
	id int32
	fd int
	h  Handler

	// busy is held while h is called. removed and tended are the poller's
	// goroutine's and, like busy, Remove's.
	busy            sync.Mutex
	removed, tended bool
}

// poller is the process's only one. It is made when it is first needed, and
// stays.
type poller struct {
	epfd int
	mu   sync.Mutex
	// watches are known to the kernel by a number, and not by their address or
	// by a descriptor that may have been closed.
	watches map[int32]*Watch
	lastID  int32
	// tended is the goroutine's.
	tended []*Watch
}

var process = sync.OnceValues(func() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making an epoll instance: %w", err)
	}
	p := &poller{epfd: fd, watches: map[int32]*Watch{}}
	go p.run()
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
	for p.watches[p.lastID] != nil { // after 2³¹ of them
		p.lastID++
	}
	w := &Watch{p: p, id: p.lastID, fd: fd, h: h}
	if err := unix.EpollCtl(p.epfd, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLONESHOT, Fd: w.id}); err != nil {
		return nil, fmt.Errorf("watching a descriptor: %w", err)
	}
	// An error or a hang-up is told whether it was asked for or not: once, and
	// to nobody, as nothing has been armed.
	p.watches[w.id] = w
	return w, nil
}

// Arm has Ready called when the descriptor is readable, at once if it is. It must
// not be called after Remove.
func (w *Watch) Arm() error {
	return unix.EpollCtl(w.p.epfd, unix.EPOLL_CTL_MOD, w.fd, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT, Fd: w.id})
}

// Remove ends it. When it returns, the handler is not being called, and never
// will be. The descriptor must still be open, and the handler must not call it.
func (w *Watch) Remove() {
	w.p.mu.Lock()
	delete(w.p.watches, w.id)
	w.p.mu.Unlock()
	_ = unix.EpollCtl(w.p.epfd, unix.EPOLL_CTL_DEL, w.fd, nil) // it was added
	w.busy.Lock()
	defer w.busy.Unlock()
	w.removed = true
}

// run is the goroutine.
func (p *poller) run() {
	var events [64]unix.EpollEvent
	next := time.Now() // to tend
	for {
		timeout := -1
		if len(p.tended) > 0 {
			timeout = max(int((time.Until(next)+time.Millisecond-1)/time.Millisecond), 0)
		}
		n, err := unix.EpollWait(p.epfd, events[:], timeout)
		if err != nil && err != unix.EINTR { // the descriptor is nobody else's to close
			panic(fmt.Sprintf("epoll_wait: %v", err))
		}
		for _, ev := range events[:max(n, 0)] {
			p.mu.Lock()
			w := p.watches[ev.Fd]
			p.mu.Unlock()
			if w != nil && w.call(Handler.Ready) && !w.tended {
				if len(p.tended) == 0 {
					next = time.Now().Add(Period)
				}
				w.tended = true
				p.tended = append(p.tended, w)
			}
		}
		if len(p.tended) > 0 && !time.Now().Before(next) {
			p.tend()
			next = time.Now().Add(Period)
		}
		// Whom that has woken runs here at once, and need not wait for another
		// thread to find out that this one sleeps in the kernel.
		runtime.Gosched()
	}
}

// tend calls those that want it.
func (p *poller) tend() {
	kept := p.tended[:0]
	for _, w := range p.tended {
		if w.call(Handler.Tend) {
			kept = append(kept, w)
		} else {
			w.tended = false
		}
	}
	clear(p.tended[len(kept):])
	p.tended = kept
}

// call calls the handler, unless the watch was removed.
func (w *Watch) call(what func(Handler) bool) bool {
	w.busy.Lock()
	defer w.busy.Unlock()
	return !w.removed && what(w.h)
}
