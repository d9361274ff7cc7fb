package progress

import (
	"os"
	"runtime"
	"sync"
	"testing"
	"time"
)

// recorder records the calls made by its watch.
type recorder struct {
	ready, tend chan time.Duration // a call receives its result from the channel
}

func newRecorder() *recorder {
	return &recorder{make(chan time.Duration), make(chan time.Duration)}
}

func (r *recorder) deadline(readable bool) time.Duration {
	if readable {
		return <-r.ready
	}
	return <-r.tend
}

// answer provides the result for the handler's next call. It fails if there is no call.
func answer(t *testing.T, c chan time.Duration, d time.Duration) {
	t.Helper()
	select {
	case c <- d:
	case <-time.After(20 * time.Second):
		t.Fatal("the handler was not called")
	}
}

// quiet fails if the handler is called. It waits for the event of another descriptor, which gives a call enough
// time to happen.
func quiet(t *testing.T, c chan time.Duration) {
	t.Helper()
	other := newRecorder()
	w, _ := watched(t, other, true)
	defer w.Remove()
	if err := w.Arm(); err != nil {
		t.Fatal(err)
	}
	answer(t, other.ready, 0)
	select {
	case c <- 0:
		t.Fatal("the handler was called")
	default:
	}
}

func watched(t *testing.T, h interface{ deadline(bool) time.Duration }, readable bool) (*watch, *os.File) {
	t.Helper()
	r, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); in.Close() })
	if readable {
		in.WriteString("x")
	}
	w, err := NewWatch(int(r.Fd()), h.deadline)
	if err != nil {
		t.Fatal(err)
	}
	return w.(*watch), in
}

func TestReadyOncePerArm(t *testing.T) {
	h := newRecorder()
	w, in := watched(t, h, false)
	defer w.Remove()
	quiet(t, h.ready)
	in.WriteString("a")
	quiet(t, h.ready) // it has not been armed
	for range 3 {
		if err := w.Arm(); err != nil {
			t.Fatal(err)
		}
		answer(t, h.ready, 0)
		quiet(t, h.ready)
		quiet(t, h.tend)
	}
}

func TestPollUntilItSaysNo(t *testing.T) {
	h := newRecorder()
	w, _ := watched(t, h, true)
	defer w.Remove()
	if err := w.Arm(); err != nil {
		t.Fatal(err)
	}
	answer(t, h.ready, time.Microsecond)
	for range 5 {
		answer(t, h.tend, time.Microsecond)
	}
	answer(t, h.tend, 0)
	quiet(t, h.tend)
	if err := w.Arm(); err != nil {
		t.Fatal(err)
	}
	answer(t, h.ready, 0)
}

// TestRemove checks that Remove waits for a running handler, and that the handler is not called afterwards.
func TestRemove(t *testing.T) {
	for range 100 {
		h := &slowHandler{begun: make(chan struct{}), end: make(chan struct{})}
		w, _ := watched(t, h, true)
		if err := w.Arm(); err != nil {
			t.Fatal(err)
		}
		<-h.begun
		go close(h.end)
		w.Remove()
		h.mu.Lock()
		if !h.done {
			t.Fatal("Remove returned while the handler was running")
		}
		h.removed = true
		h.mu.Unlock()
	}
}

// slowHandler runs until end is closed.
type slowHandler struct {
	begun, end    chan struct{}
	mu            sync.Mutex
	done, removed bool
}

func (h *slowHandler) deadline(readable bool) time.Duration {
	if !readable {
		return h.again()
	}
	close(h.begun) // panics on a second call
	<-h.end
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done = true
	return time.Nanosecond
}

func (h *slowHandler) again() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.removed {
		panic("called after Remove")
	}
	return time.Nanosecond
}

// TestServeWatches checks that serveWatches calls handlers directly, even while the poller is blocked.
func TestServeWatches(t *testing.T) {
	holder := &slowHandler{begun: make(chan struct{}), end: make(chan struct{})}
	w, _ := watched(t, holder, true)
	defer w.Remove()
	if err := w.Arm(); err != nil {
		t.Fatal(err)
	}
	<-holder.begun
	defer close(holder.end)

	h := &recorder{make(chan time.Duration, 1), nil}
	x, in := watched(t, h, false)
	defer x.Remove()
	if err := x.Arm(); err != nil {
		t.Fatal(err)
	}
	if n := serveWatches(); n != 0 {
		t.Errorf("%d are readable, and none should be", n)
	}
	in.WriteString("x")
	h.ready <- 0
	if n := serveWatches(); n != 1 || len(h.ready) != 0 {
		t.Errorf("%d are readable, %d calls are missing", n, len(h.ready))
	}
	if n := serveWatches(); n != 0 {
		t.Errorf("%d are called twice", n)
	}
}

func TestWatchRefusesWhatCannotBeWatched(t *testing.T) {
	if w, err := NewWatch(-1, newRecorder().deadline); err == nil || w != nil {
		t.Errorf("%v, %v", w, err)
	}
}

// TestUnregister checks that Arm makes the poller watch an unregistered descriptor again.
func TestUnregister(t *testing.T) {
	h := newRecorder()
	w, in := watched(t, h, false)
	for range 3 {
		w.unregister()
		w.unregister()
		in.WriteString("a")
		quiet(t, h.ready)
		if err := w.Arm(); err != nil {
			t.Fatal(err)
		}
		answer(t, h.ready, 0)
	}
	w.unregister()
	w.Remove()
}

// dueAt returns the time of a watch's next timed call, and whether the timer expires at that time.
func (w *watch) dueAt() (at time.Duration, next bool) {
	w.poller.mu.Lock()
	defer w.poller.mu.Unlock()
	next = w.nextCallAt != 0 && w.poller.timer.next != 0 && w.poller.timer.next <= w.nextCallAt
	for _, v := range w.poller.timer.pending { // ignore the watch that measures wake-ups
		next = next && (v.fd < 0 || v.nextCallAt >= w.nextCallAt)
	}
	return w.nextCallAt, next
}

// TestPostponeWatch checks that postpone moves the next timed call, and has no effect without a pending call.
func TestPostponeWatch(t *testing.T) {
	h, other := newRecorder(), newRecorder()
	w, _ := watched(t, h, true)
	defer w.Remove()
	v, _ := watched(t, other, true)
	w.postpone(time.Microsecond)
	quiet(t, h.tend) // there is no call to postpone
	for _, x := range []*watch{w, v} {
		if err := x.Arm(); err != nil {
			t.Fatal(err)
		}
	}
	answer(t, h.ready, time.Hour)
	answer(t, other.ready, 2*time.Hour)
	quiet(t, h.tend)
	first, next := w.dueAt()
	if !next {
		t.Error("the timer does not expire when the first call is due")
	}
	w.postpone(3 * time.Hour)
	later, next := w.dueAt()
	if later < first+time.Hour || next {
		t.Errorf("due at %v, and then at %v; first %v", first, later, next)
	}
	if _, next := v.dueAt(); !next {
		t.Error("the timer does not expire when the other one is due")
	}
	v.Remove()
	w.postpone(time.Microsecond)
	answer(t, h.tend, 0)
	quiet(t, h.tend)
	if at, _ := w.dueAt(); at != 0 {
		t.Errorf("due at %v again", at)
	}
}

// TestGoroutineEnds checks that the poller's goroutine exits when the last watch is removed, and is started
// again for the next watch.
func TestGoroutineEnds(t *testing.T) {
	p, err := processPoller()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		h := newRecorder()
		w, _ := watched(t, h, true)
		if err := w.Arm(); err != nil {
			t.Fatal(err)
		}
		answer(t, h.ready, 0)
		w.Remove()
		ended := func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return !p.running
		}
		for end := time.Now().Add(20 * time.Second); !ended(); runtime.Gosched() {
			if time.Now().After(end) {
				t.Fatalf("it runs, with %d watches", len(p.watches))
			}
		}
	}
}
