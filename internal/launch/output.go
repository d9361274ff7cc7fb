package launch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// maxLineBuffer is the length in bytes beyond which a line is printed in pieces.
const maxLineBuffer = 64 << 10

// partialLineTime limits how long an incomplete line is held back. A limit is needed because prompts do not end with a
// newline.
const partialLineTime = 100 * time.Millisecond

// output merges the output of all ranks, so that lines of different ranks do not mix.
type output struct {
	mu     sync.Mutex
	writer io.Writer
	// err is the first error of to.
	err error
}

// copy copies the output of a rank from its pipe until the pipe is closed.
func (o *output) copy(from *os.File, label string) {
	held := make([]byte, 0, 4<<10)
	chunk := make([]byte, 32<<10)
	for {
		n, err := from.Read(chunk)
		held = append(held, chunk[:n]...)
		if end := bytes.LastIndexByte(held, '\n') + 1; end > 0 {
			o.print(held[:end], label)
			held = append(held[:0], held[end:]...)
		}
		late := errors.Is(err, os.ErrDeadlineExceeded)
		if len(held) > 0 && (late || err != nil || len(held) > maxLineBuffer) {
			o.print(held, label)
			held = held[:0]
		}
		if err != nil && !late {
			return
		}
		deadline := time.Time{}
		if len(held) > 0 {
			deadline = time.Now().Add(partialLineTime)
		}
		_ = from.SetReadDeadline(deadline) // print a prompt although its line is incomplete
	}
}

// print prints lines. The last one may be incomplete.
func (o *output) print(lines []byte, label string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if label != "" {
		var all bytes.Buffer
		for line := range bytes.SplitAfterSeq(lines, []byte("\n")) {
			if len(line) > 0 {
				fmt.Fprintf(&all, "%s%s", label, line)
			}
		}
		lines = all.Bytes()
	}
	if _, err := o.writer.Write(lines); err != nil && o.err == nil {
		o.err = err
	}
}
