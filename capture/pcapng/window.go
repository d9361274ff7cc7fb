package pcapng

import (
	"errors"
	"io"
)

// windowSize is the size in bytes of the buffer through which a file is read. It
// is all that reading a file ever allocates, whatever lengths the file claims,
// and large enough that a read from the page cache costs little per byte.
const windowSize = 512 << 10

// maxEmptyReads is how often in a row a reader may return nothing before reading fails.
const maxEmptyReads = 100

// window shows a stream a piece at a time, without copying what fits.
type window struct {
	r      io.Reader
	buf    []byte
	lo, hi int
	// offset is the place in the stream of buf[lo].
	offset int64
	err    error
}

func newWindow(r io.Reader) *window {
	return &window{r: r, buf: make([]byte, windowSize)}
}

// need returns the next n bytes, which stay in front until advance, and are valid
// until the next call of need or skip. n is at most windowSize. If the stream
// ends before, the error is io.EOF or io.ErrUnexpectedEOF, depending on whether
// there is anything left.
func (w *window) need(n int) ([]byte, error) {
	if w.hi-w.lo < n {
		if err := w.fill(n); err != nil {
			return nil, err
		}
	}
	return w.buf[w.lo : w.lo+n], nil
}

// fill reads until there are n bytes.
func (w *window) fill(n int) error {
	if w.lo > 0 {
		w.hi = copy(w.buf, w.buf[w.lo:w.hi])
		w.lo = 0
	}
	for empty := 0; w.hi < n; {
		if w.err != nil {
			return w.ended(w.hi)
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

// ended returns the error for a stream that ended with so many bytes left.
func (w *window) ended(left int) error {
	if left > 0 && errors.Is(w.err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return w.err
}

// advance puts n bytes behind, that need has returned.
func (w *window) advance(n int) {
	w.lo += n
	w.offset += int64(n)
}

// skip puts n bytes behind, any number.
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
