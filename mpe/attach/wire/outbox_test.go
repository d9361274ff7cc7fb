package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// gatedWriter is a stream whose writes wait until the test permits them, one at a time.
type gatedWriter struct {
	unused
	goroutines
	gate chan struct{}
	mu   sync.Mutex
	got  bytes.Buffer
	err  error
}

// unused provides the methods of Stream that an Outbox never calls.
type unused struct{ Stream }

func (w *gatedWriter) TryWrite([]byte) int { return 0 }

func (w *gatedWriter) Write(b []byte) (int, error) {
	<-w.gate
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, w.err
	}
	return w.got.Write(b)
}

func (w *gatedWriter) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.got.String()
}

// parts is an item that consists of several frames, each with a name and a payload.
type parts struct {
	name    string
	left    int
	payload []byte
	done    func()
}

func (p *parts) Frame(b []byte) (head, payload []byte, more bool) {
	p.left--
	return append(b, p.name...), p.payload, p.left > 0
}

func (p *parts) Written() {
	if p.done != nil {
		p.done()
	}
}

func newGated(t *testing.T) (*Outbox, *gatedWriter) {
	w := &gatedWriter{gate: make(chan struct{}, 1000)}
	o := NewOutbox(w)
	o.OnFailure = func() {}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		o.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return o, w
}

// squeeze replaces every ChunkLen bytes of payload with a single character.
func squeeze(s string) string {
	return strings.ReplaceAll(s, strings.Repeat("-", ChunkLen), "-")
}

func TestOutboxInterleaves(t *testing.T) {
	o, w := newGated(t)
	payload := bytes.Repeat([]byte("-"), ChunkLen)
	o.put(&parts{name: "A", left: 4, payload: payload})
	o.put(&parts{name: "B", left: 3, payload: payload})
	for range 2 { // "A" and its first piece are written
		w.gate <- struct{}{}
	}
	eventually(t, "A has begun", func() bool { return len(w.text()) == 1+ChunkLen })
	for i := range 5 {
		o.put(&parts{name: fmt.Sprint(i), left: 1})
	}
	close(w.gate)
	eventually(t, "all is written", func() bool { return len(w.text()) == 4+3+7*ChunkLen+5 })
	text := squeeze(w.text())
	// A small item waits only for the frame in progress. The frames of A and B alternate.
	if small := strings.Index(text, "01234"); small < 0 || small > 5 {
		t.Errorf("small ones come late: %s", text)
	}
	if rest := strings.ReplaceAll(text, "01234", ""); rest != "A-B-A-B-A-B-A-" {
		t.Errorf("large ones do not take turns: %s", text)
	}
}

// TestOutboxStarves checks that an endless stream of small items does not block a large item.
func TestOutboxStarves(t *testing.T) {
	o, w := newGated(t)
	var small *parts
	again := true
	var mu sync.Mutex
	small = &parts{name: strings.Repeat(".", 1000), done: func() {
		mu.Lock()
		defer mu.Unlock()
		if again {
			small.left = 1
			o.put(small)
		}
	}}
	small.left = 1
	o.put(small)
	o.put(&parts{name: "L", left: 20, payload: make([]byte, CopyLen+1), done: func() {
		mu.Lock()
		defer mu.Unlock()
		again = strings.Count(w.text(), "L") < 20
	}})
	close(w.gate)
	eventually(t, "the large one is written", func() bool { return strings.Count(w.text(), "L") == 20 })
}

func TestOutboxFails(t *testing.T) {
	o, w := newGated(t)
	failed := make(chan struct{}, 2)
	o.OnFailure = func() { failed <- struct{}{} }
	w.err = errors.New("gone")
	close(w.gate)
	o.put(RawFrame("x"))
	<-failed
	o.Send(RawFrame("y"))
	o.CloseWith(RawFrame("z")) // must not block
	if w.text() != "" {
		t.Errorf("%q", w.text())
	}
}

func TestOutboxCloseWith(t *testing.T) {
	o, w := newGated(t)
	o.put(&parts{name: "A", left: 100, payload: bytes.Repeat([]byte("-"), ChunkLen)})
	w.gate <- struct{}{}
	w.gate <- struct{}{}
	eventually(t, "A has begun", func() bool { return len(w.text()) == 1+ChunkLen })
	o.put(RawFrame("B"))
	go func() {
		for closed := false; !closed; runtime.Gosched() { // once it is closed, the queued items have been dropped
			o.mu.Lock()
			closed = o.closed
			o.mu.Unlock()
		}
		close(w.gate)
	}()
	o.CloseWith(RawFrame("bye"))
	if text := squeeze(w.text()); !strings.HasSuffix(text, "bye") || len(text) > 10 {
		t.Errorf("%q", text)
	}
}

func TestFIFO(t *testing.T) {
	var q fifo
	next, last := 0, 0
	for round := range 200 {
		for range round * 3 {
			q.push(RawFrame(fmt.Sprint(last)))
			last++
		}
		for range round * 2 {
			if it := q.pop(); string(it.(RawFrame)) != fmt.Sprint(next) {
				t.Fatalf("%s instead of %d", it, next)
			}
			next++
		}
		if q.len() != last-next {
			t.Fatalf("%d items instead of %d", q.len(), last-next)
		}
	}
	for ; next < last; next++ {
		q.pop()
	}
	if q.len() != 0 || q.pop() != nil {
		t.Error("not empty")
	}
}

// put queues an item for Run to write. It never blocks.
func (o *Outbox) put(it Item) {
	if o.push(it, true) {
		o.wakeRun()
	}
}
