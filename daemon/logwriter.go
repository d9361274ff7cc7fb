package daemon

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// LogWriter queues log lines for a writer that may be slow, blocked, full or closed. Callers never block and never get
// an error: LogWriter drops and counts the lines that it cannot write. It is safe for concurrent use.
type LogWriter struct {
	lines   chan []byte
	closing chan struct{}
	done    chan struct{}
	lost    atomic.Uint64

	mu   sync.Mutex
	tail []byte // the most recent lines, including lost ones
}

// NewLogWriter returns a LogWriter that writes to out until Close is called.
func NewLogWriter(out io.Writer) *LogWriter {
	w := &LogWriter{lines: make(chan []byte, maxQueuedLines), closing: make(chan struct{}), done: make(chan struct{})}
	go w.run(out)
	return w
}

// Write queues a copy of line. It never fails.
func (w *LogWriter) Write(line []byte) (int, error) {
	w.appendTail(line)
	select {
	case w.lines <- bytes.Clone(line):
	default:
		w.lost.Add(1)
	}
	return len(line), nil
}

// maxTail is the maximum length in bytes of the log tail.
const maxTail = 256 << 10

// appendTail adds a line to the tail. The tail grows to twice its limit before old lines are discarded, so that most
// calls copy only their line.
func (w *LogWriter) appendTail(line []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.tail)+len(line) > 2*maxTail {
		w.tail = append(w.tail[:0], lastLines(w.tail)...)
	}
	w.tail = append(w.tail, lastLines(line)...)
}

// lastLines returns the complete lines in the last maxTail bytes of text.
func lastLines(text []byte) []byte {
	if len(text) <= maxTail {
		return text
	}
	text = text[len(text)-maxTail-1:]
	return text[bytes.IndexByte(text, '\n')+1:]
}

// Tail returns the most recent lines, at most maxTail bytes.
func (w *LogWriter) Tail() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Clone(lastLines(w.tail))
}

// Lost returns the number of lost lines.
func (w *LogWriter) Lost() uint64 { return w.lost.Load() }

// Close waits until all lines have been written, but at most for limit. A blocked write continues in the background.
// Close must be called exactly once.
func (w *LogWriter) Close(limit time.Duration) {
	close(w.closing)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-w.done:
	case <-timer.C:
	}
}

// run writes queued lines to out.
func (w *LogWriter) run(out io.Writer) {
	defer close(w.done)
	for {
		select {
		case line := <-w.lines:
			w.write(out, line)
			continue
		default:
		}
		select { // the queue is empty
		case line := <-w.lines:
			w.write(out, line)
		case <-w.closing:
			return
		}
	}
}

// write writes a line. After an error, it counts the line as lost, and later lines are still written.
func (w *LogWriter) write(out io.Writer, line []byte) {
	if _, err := out.Write(line); err != nil {
		w.lost.Add(1)
	}
}
