//go:build linux

package progress

import (
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// fakeOwner has a clock that advances by step each time it is read.
type fakeOwner struct {
	now, step    atomic.Int64
	asked, ticks atomic.Int32
	armed        atomic.Int32
	calls        atomic.Uint32
	onArmed      func() // may be nil
	mu           sync.Mutex
	errs         []error
}

func (o *fakeOwner) Now() time.Duration {
	o.asked.Add(1)
	return time.Duration(o.now.Add(o.step.Load()))
}
func (o *fakeOwner) Tick(time.Duration) { o.ticks.Add(1) }
func (o *fakeOwner) Calls() uint32      { return o.calls.Load() }

func (o *fakeOwner) Armed() {
	o.armed.Add(1)
	if o.onArmed != nil {
		o.onArmed()
	}
}

func (o *fakeOwner) Failed(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.errs = append(o.errs, err)
}

func (o *fakeOwner) failures() []error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.errs
}

// fakeSource returns the events added by put. Each event is also a byte in a pipe whose reading end is the
// source's descriptor.
type fakeSource struct {
	r, w  int
	polls atomic.Int32

	mu  sync.Mutex
	n   int
	err error // returned by the next Poll, and by all later ones if it is ErrSourceEnded
	// polled is called by Poll, on the goroutine of the owner, with the number of events.
	polled func(n int)
	// unwatched is set by Unwatch, and cleared by Sleep.
	unwatched bool
}

func newSource(t testing.TB) *fakeSource {
	t.Helper()
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_NONBLOCK|syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(ends[0]); syscall.Close(ends[1]) })
	return &fakeSource{r: ends[0], w: ends[1], polled: func(int) {}}
}

func (s *fakeSource) put() {
	s.mu.Lock()
	s.n++
	s.mu.Unlock()
	syscall.Write(s.w, []byte{0})
}

func (s *fakeSource) fail(err error) {
	s.mu.Lock()
	s.err = err
	s.mu.Unlock()
	syscall.Write(s.w, []byte{0})
}

func (s *fakeSource) Poll() (int, error) {
	s.polls.Add(1)
	s.mu.Lock()
	n, err := s.n, s.err
	s.n = 0
	if err != ErrSourceEnded {
		s.err = nil
	}
	s.mu.Unlock()
	if n > 0 || err != nil {
		syscall.Read(s.r, make([]byte, 64))
	}
	s.polled(n)
	return n, err
}

func (s *fakeSource) Unwatch() { s.unwatched = true }

func (s *fakeSource) Sleep() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unwatched = false
	return s.n == 0
}

// newGroup returns a group with the given sources, which are not watched yet.
func newGroup(t testing.TB, oversubscribed bool, sources ...*fakeSource) (*Group, *fakeOwner) {
	t.Helper()
	o := &fakeOwner{}
	o.step.Store(int64(10 * time.Microsecond))
	g := &Group{}
	g.Init(o, oversubscribed)
	for _, s := range sources {
		if err := g.Add(s.r, s, NetworkInterval); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(g.Remove)
	return g, o
}
