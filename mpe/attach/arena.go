package attach

import (
	"slices"
	"sync"
)

// The arena is the part of the shared memory after the rings. It holds payload that is not sent in frames;
// instead, START contains the payload's offset in the arena. docs/attach.md specifies the arena.
const (
	// arenaLeast is the minimum length of a payload that this client places in the arena. Shorter payloads are
	// just as fast in frames.
	arenaLeast = 16 << 10
	// arenaBlock is the granularity of the blocks that this client allocates.
	arenaBlock = 4 << 10
)

// span is a part of an arena. A span of length 0 is empty.
type span struct{ at, n int }

func (b span) end() int { return b.at + b.n }

// arena allocates blocks of a client's arena. The client must be locked while a method other than write and
// close is called.
type arena struct {
	free []span // sorted; no two spans are adjacent

	// using guards mem, which becomes nil when the connection ends.
	using sync.RWMutex
	mem   []byte
}

func (a *arena) open(mem []byte) {
	a.mem = mem
	if n := len(mem) &^ (arenaBlock - 1); n > 0 {
		a.free = []span{{0, n}}
	}
}

// take returns a block for n bytes, or an empty span if none is free. First fit keeps the used part of the
// arena small and therefore in the processors' caches.
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

// put frees a block. It ignores an empty span.
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

// write copies payload to a block.
func (a *arena) write(b span, payload []byte) {
	a.using.RLock()
	defer a.using.RUnlock()
	if a.mem != nil {
		copy(a.mem[b.at:b.end()], payload)
	}
}

// close makes mem nil once no goroutine uses it.
func (a *arena) close() {
	a.using.Lock()
	defer a.using.Unlock()
	a.mem = nil
}
