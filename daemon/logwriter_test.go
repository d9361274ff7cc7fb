package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

func TestLogWriterWritesAll(t *testing.T) {
	var out, want bytes.Buffer
	w := NewLogWriter(&out)
	line := make([]byte, 0, 100)
	for i := range maxQueuedLines {
		line = fmt.Appendf(line[:0], "line %d\n", i) // the memory is reused, as zap does
		want.Write(line)
		if n, err := w.Write(line); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	w.Close(testTimeout)
	if out.String() != want.String() || w.Lost() != 0 {
		t.Errorf("%d of %d bytes are written, %d lines lost", out.Len(), want.Len(), w.Lost())
	}
}

// TestLogWriterTail checks that the tail of the log is kept in complete lines, whether or not they have been
// written.
func TestLogWriterTail(t *testing.T) {
	w := NewLogWriter(io.Discard)
	defer w.Close(testTimeout)
	const lines = 100_000
	for i := range lines {
		fmt.Fprintf(w, "line %d\n", i)
	}
	got := w.Tail()
	first, _, _ := bytes.Cut(got, []byte("\n"))
	if len(got) > maxTail || len(got) < maxTail-len(first) || !bytes.HasPrefix(first, []byte("line ")) ||
		!bytes.HasSuffix(got, fmt.Appendf(nil, "\nline %d\n", lines-1)) {
		t.Errorf("%d bytes from %q", len(got), first)
	}
	fmt.Fprintf(w, "%*d\n", 2*maxTail, 1) // longer than the tail
	fmt.Fprintln(w, "after it")
	if got := w.Tail(); !bytes.HasSuffix(got, []byte("\nafter it\n")) || len(got) > maxTail {
		t.Errorf("%d bytes", len(got))
	}
}

// TestLogWriterIsStuck checks that lines that do not fit in the queue are dropped and counted, that Write never
// blocks, and that Close does not wait forever.
func TestLogWriterIsStuck(t *testing.T) {
	out, stuck := io.Pipe() // without a reader
	w := NewLogWriter(stuck)
	const more = 10
	for range maxQueuedLines + 1 + more { // the writer may hold one line
		if _, err := w.Write([]byte("line\n")); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.Lost(); n != more && n != more+1 {
		t.Errorf("%d lines are lost, want %d or one more", n, more)
	}
	w.Close(time.Millisecond)
	select {
	case <-w.done:
		t.Error("a line was written without a reader")
	default:
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // once it is read again, the queued lines are written
	select {
	case <-w.done:
	case <-time.After(testTimeout):
		t.Error("the lines that wait are not written")
	}
}

// TestLogWriterFails checks that lines that cannot be written are counted, and that later lines are written.
func TestLogWriterFails(t *testing.T) {
	var out bytes.Buffer
	w := NewLogWriter(writerFunc(func(line []byte) error {
		if string(line) == "lost\n" {
			return errors.New("no space left")
		}
		out.Write(line)
		return nil
	}))
	for _, line := range []string{"lost\n", "kept\n"} {
		if _, err := io.WriteString(w, line); err != nil {
			t.Error(err)
		}
	}
	w.Close(testTimeout)
	if out.String() != "kept\n" || w.Lost() != 1 {
		t.Errorf("%q is written, %d lines lost", &out, w.Lost())
	}
}

// TestPacketPathDoesNotWaitForTheLog checks that the packet path is not blocked even while the log blocks a
// flush of suppressed lines.
func TestPacketPathDoesNotWaitForTheLog(t *testing.T) {
	reached, release := make(chan struct{}), make(chan struct{})
	core := zapcore.NewCore(zapcore.NewConsoleEncoder(zapcore.EncoderConfig{MessageKey: "m"}),
		zapcore.AddSync(writerFunc(func([]byte) error {
			close(reached)
			<-release
			return nil
		})), zapcore.InfoLevel)
	o := newObserver(zap.New(core), func(int, int) protocol.Profile { return protocol.CloudFPGA })
	var clock time.Duration
	o.now = func() time.Duration { return clock }
	drop := mpe.Drop{Packet: arrival, Reason: state.DropSourceRank}
	o.Dropped(0, 2, drop)
	o.Dropped(0, 2, drop)
	clock = minLineInterval
	flushed := make(chan struct{})
	go func() {
		defer close(flushed)
		o.flush()
	}()
	<-reached
	passed := make(chan struct{})
	go func() {
		defer close(passed)
		o.Dropped(0, 2, drop)
	}()
	select {
	case <-passed:
	case <-time.After(testTimeout):
		t.Error("a dropped packet waits for the log")
	}
	close(release)
	<-flushed
	<-passed
}

// writerFunc is a writer that accepts everything or fails.
type writerFunc func([]byte) error

func (f writerFunc) Write(p []byte) (int, error) { return len(p), f(p) }

// TestReadyLineCannotBeWritten checks that the daemon logs the error and keeps running.
func TestReadyLineCannotBeWritten(t *testing.T) {
	r := startWith(t, newCluster(t).yaml("", echoes(1, "")...), func(o *Options) {
		ready := o.ReadyWriter
		o.ReadyWriter = writerFunc(func(line []byte) error {
			_, _ = ready.Write(line)
			return errors.New("no space left")
		})
		o.LostLogLines = func() uint64 { return 7 }
	})
	r.log.waitFor(t, "ready line not written")
	r.ping(t, 1, 10, 1)
	if s, err := r.client.Status(within(t)); err != nil || s.LostLogLines != 7 {
		t.Errorf("%d log lines are lost, want 7; %v", s.LostLogLines, err)
	}
}
