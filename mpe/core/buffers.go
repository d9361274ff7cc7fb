package core

import (
	"bytes"
	"math/bits"
)

// buffers provides memory for payload that is not in a caller's buffer: copies of outgoing eager messages, and messages
// that no receive has matched yet. Credit limits the amount of both, so only the lists of free buffers need a limit of
// their own.
type buffers struct {
	free      [maxClass + 1][][]byte
	freeBytes int
	// releases maps the address of a buffer's first byte to its release function, for buffers returned by a KeepFunc.
	releases map[*byte]func()
}

const (
	// minClass and maxClass are the base-2 logarithms of the smallest and largest buffer sizes kept for reuse: 64 bytes
	// and 64 KiB. The garbage collector frees larger buffers.
	minClass = 6
	maxClass = 16
	// maxFreeBytes limits the total size of the buffers kept for reuse.
	maxFreeBytes = 4 << 20
)

// get returns a buffer of n bytes with undefined contents.
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
		b.freeBytes -= 1 << c
		return buf[:n]
	}
	return make([]byte, n, 1<<c)
}

// detach returns memory that the engine owns and that holds the bytes of buf: either the result of the function keep,
// or a copy if keep is nil.
func (b *buffers) detach(buf []byte, keep KeepFunc) []byte {
	if keep == nil || len(buf) == 0 {
		return bytes.Clone(buf)
	}
	buf, release := keep(buf)
	if b.releases == nil {
		b.releases = make(map[*byte]func())
	}
	b.releases[&buf[0]] = release
	return buf
}

// put releases a buffer that get or detach returned.
func (b *buffers) put(buf []byte) {
	if len(b.releases) > 0 && len(buf) > 0 {
		if release, ok := b.releases[&buf[0]]; ok {
			delete(b.releases, &buf[0])
			release()
			return
		}
	}
	c := bits.Len(uint(cap(buf))) - 1
	if c < minClass || c > maxClass || cap(buf) != 1<<c || b.freeBytes+cap(buf) > maxFreeBytes {
		return
	}
	b.free[c] = append(b.free[c], buf[:0])
	b.freeBytes += cap(buf)
}
