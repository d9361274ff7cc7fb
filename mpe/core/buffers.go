package core

import (
	"bytes"
	"math/bits"
)

// buffers keeps memory for payload that has no other place: eager messages on
// their way out, and those that no receive has matched. Both are bounded by
// credit, so what is kept for later use is bounded here.
type buffers struct {
	free [maxClass + 1][][]byte
	held int
	// given are buffers that Keep has returned, by their beginning, and what is called when the
	// engine needs them no longer.
	given map[*byte]func()
}

const (
	// minClass and maxClass are the sizes of the buffers that are kept, as
	// powers of two: 64 bytes to 64 KiB. Larger ones are left to the garbage
	// collector.
	minClass = 6
	maxClass = 16
	// maxHeld is how many bytes are kept for later.
	maxHeld = 4 << 20
)

// get returns a buffer of n bytes, whose contents are undefined.
func (b *buffers) get(n int) []byte {
	c := max(bits.Len(uint(max(n, 1)-1)), minClass)
	if c > maxClass {
		return make([]byte, n)
	}
	free := &b.free[c]
	if last := len(*free) - 1; last >= 0 {
		buf := (*free)[last]
		(*free)[last] = nil
		*free = (*free)[:last]
		b.held -= 1 << c
		return buf[:n]
	}
	return make([]byte, n, 1<<c)
}

// own returns a buffer with the same bytes that is the engine's: what keep returns, or a copy
// if it is nil.
func (b *buffers) own(buf []byte, keep Keep) []byte {
	if keep == nil || len(buf) == 0 {
		return bytes.Clone(buf)
	}
	buf, release := keep(buf)
	if b.given == nil {
		b.given = make(map[*byte]func())
	}
	b.given[&buf[0]] = release
	return buf
}

// put gives a buffer back that get or own returned.
func (b *buffers) put(buf []byte) {
	if len(b.given) > 0 && len(buf) > 0 {
		if release, ok := b.given[&buf[0]]; ok {
			delete(b.given, &buf[0])
			release()
			return
		}
	}
	c := bits.Len(uint(cap(buf))) - 1
	if c < minClass || c > maxClass || cap(buf) != 1<<c || b.held+cap(buf) > maxHeld {
		return
	}
	b.free[c] = append(b.free[c], buf[:0])
	b.held += cap(buf)
}
