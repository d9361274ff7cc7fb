package attach

import (
	"slices"
	"sync"
)

// The arena is memory after the rings, for payload that frames do not carry: START has its offset. docs/attach.md
// specifies it.
const (
	// arenaLeast is the shortest payload that this client puts there. Shorter ones are as fast in frames.
	arenaLeast = 16 << 10
	// arenaBlock is the granularity of this client's blocks.
	arenaBlock = 4 << 10
)

// span is a part of an arena, or of length 0 for no part.
type span struct{ at, n int }

func (b span) end() int { return b.at + b.n }

// arena is a client's allocator of blocks. Its methods except write and close are called with the client locked.
type arena struct {
	free []span // sorted, and never adjacent

	// using guards mem, which is nil after the end of the connection.
	using sync.RWMutex
	mem   []byte
}

func (a *arena) open(mem []byte) {
	a.mem = mem
	if n := len(mem) &^ (arenaBlock - 1); n > 0 {
		a.free = []span{{0, n}}
	}
}

// take returns a block for n bytes, or an empty span. First fit keeps the used part of the arena small, and in the
// processors' caches.
func (a *arena) take(n int) span {
	n = (n + arenaBlock - 1) &^ (arenaBlock - 1)
	for i := range a.free {
		f := &a.free[i]
		if f.n < n {
			continue
		}
		b := span{f.at, n}
		if f.at, f.n = f.at+n, f.n-n; f.n == 0 {
			a.free = slices.Delete(a.free, i, i+1)
		}
		return b
	}
	return span{}
}

// put frees a block. An empty span is ignored.
func (a *arena) put(b span) {
	if b.n == 0 {
		return
	}
	i, _ := slices.BinarySearchFunc(a.free, b, func(f, b span) int { return f.at - b.at })
	after := i < len(a.free) && b.end() == a.free[i].at
	switch before := i > 0 && a.free[i-1].end() == b.at; {
	case before && after:
		a.free[i-1].n += b.n + a.free[i].n
		a.free = slices.Delete(a.free, i, i+1)
	case before:
		a.free[i-1].n += b.n
	case after:
		a.free[i] = span{b.at, b.n + a.free[i].n}
	default:
		a.free = slices.Insert(a.free, i, b)
	}
}

// write copies payload into a block.
func (a *arena) write(b span, payload []byte) {
	a.using.RLock()
	defer a.using.RUnlock()
	if a.mem != nil {
		copy(a.mem[b.at:b.end()], payload)
	}
}

// close waits until the memory is no longer used.
func (a *arena) close() {
	a.using.Lock()
	defer a.using.Unlock()
	a.mem = nil
}
