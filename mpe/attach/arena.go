package attach

import (
	"slices"
	"sync"
)

// The arena is the part of the shared memory after the rings. It holds payload that is not sent in frames; for such
// payload, the START frame contains the offset in the arena. docs/attach.md specifies the arena.
const (
	// minArenaPayload is the minimum length of a payload that this client places in the arena. Sending a shorter
	// payload in frames is just as fast.
	minArenaPayload = 16 << 10
	// arenaBlock is the granularity of the blocks that this client allocates.
	arenaBlock = 4 << 10
)

// span is a contiguous part of an arena. A span of length 0 is empty.
type span struct{ offset, length int }

func (b span) end() int { return b.offset + b.length }

// arena manages a client's arena and allocates blocks of it. Callers of all methods except write and close must hold
// the client's lock.
type arena struct {
	freeSpans []span // sorted; no two spans are adjacent

	// memMu guards mem, which becomes nil when the connection ends.
	memMu sync.RWMutex
	mem   []byte
}

func (a *arena) init(mem []byte) {
	a.mem = mem
	if n := len(mem) &^ (arenaBlock - 1); n > 0 {
		a.freeSpans = []span{{0, n}}
	}
}

// alloc returns a block for n bytes, or an empty span if none is free. First fit keeps the used part of the arena small
// and therefore in the processors' caches.
func (a *arena) alloc(n int) span {
	n = (n + arenaBlock - 1) &^ (arenaBlock - 1)
	for i := range a.freeSpans {
		f := &a.freeSpans[i]
		if f.length < n {
			continue
		}
		b := span{f.offset, n}
		if f.offset, f.length = f.offset+n, f.length-n; f.length == 0 {
			a.freeSpans = slices.Delete(a.freeSpans, i, i+1)
		}
		return b
	}
	return span{}
}

// release frees a block. It ignores an empty span.
func (a *arena) release(b span) {
	if b.length == 0 {
		return
	}
	i, _ := slices.BinarySearchFunc(a.freeSpans, b, func(f, b span) int { return f.offset - b.offset })
	after := i < len(a.freeSpans) && b.end() == a.freeSpans[i].offset
	switch before := i > 0 && a.freeSpans[i-1].end() == b.offset; {
	case before && after:
		a.freeSpans[i-1].length += b.length + a.freeSpans[i].length
		a.freeSpans = slices.Delete(a.freeSpans, i, i+1)
	case before:
		a.freeSpans[i-1].length += b.length
	case after:
		a.freeSpans[i] = span{b.offset, b.length + a.freeSpans[i].length}
	default:
		a.freeSpans = slices.Insert(a.freeSpans, i, b)
	}
}

// write copies payload to a block.
func (a *arena) write(b span, payload []byte) {
	a.memMu.RLock()
	defer a.memMu.RUnlock()
	if a.mem != nil {
		copy(a.mem[b.offset:b.end()], payload)
	}
}

// close waits until no goroutine uses the field mem, and then sets it to nil.
func (a *arena) close() {
	a.memMu.Lock()
	defer a.memMu.Unlock()
	a.mem = nil
}
