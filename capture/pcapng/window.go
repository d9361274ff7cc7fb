package pcapng

import (
	"errors"
	"io"
)

// windowSize is the size in bytes of the buffer through which a file is read. A reader allocates no larger buffer,
// whatever lengths the file claims. The size makes the cost of a read system call per byte negligible.
const windowSize = 512 << 10

// maxEmptyReads is the number of consecutive reads without data after which reading fails.
const maxEmptyReads = 100

// window is a buffer that holds part of a stream and moves along it as bytes are consumed.
type window struct {
	r      io.Reader
	buf    []byte
	lo, hi int
	// offset is the position in the stream of the byte buf[lo].
	offset int64
	err    error
}

func newWindow(r io.Reader) *window {
	return &window{r: r, buf: make([]byte, windowSize)}
}

// peek returns the next n bytes without consuming them. They are valid until the next call of peek or skip. n is at
// most windowSize. If fewer bytes are left in the stream, the error is io.EOF if none are left, and io.ErrUnexpectedEOF
// otherwise.
func (w *window) peek(n int) ([]byte, error) {
	if w.hi-w.lo < n {
		if err := w.fill(n); err != nil {
			return nil, err
		}
	}
	return w.buf[w.lo : w.lo+n], nil
}

// fill reads until n bytes are buffered.
func (w *window) fill(n int) error {
	if w.lo > 0 {
		w.hi = copy(w.buf, w.buf[w.lo:w.hi])
		w.lo = 0
	}
	for empty := 0; w.hi < n; {
		if w.err != nil {
			return w.endError(w.hi)
		}
		var got int
		got, w.err = w.r.Read(w.buf[w.hi:])
		w.hi += got
		if got > 0 {
			empty = 0
		} else if empty++; empty >= maxEmptyReads && w.err == nil {
			w.err = io.ErrNoProgress
		}
	}
	return nil
}

// endError returns the error to report when the stream ends. left is the number of bytes that remain in the buffer.
func (w *window) endError(left int) error {
	if left > 0 && errors.Is(w.err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return w.err
}

// advance consumes n bytes returned by peek.
func (w *window) advance(n int) {
	w.lo += n
	w.offset += int64(n)
}

// skip consumes n bytes of the stream, whether they are in the buffer or not.
func (w *window) skip(n int64) error {
	for n > 0 {
		if w.lo == w.hi {
			if err := w.fill(1); err != nil {
				if errors.Is(err, io.EOF) {
					err = io.ErrUnexpectedEOF
				}
				return err
			}
		}
		step := min(n, int64(w.hi-w.lo))
		w.advance(int(step))
		n -= step
	}
	return nil
}
