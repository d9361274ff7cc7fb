package attach

import (
	"slices"
	"sync"
)

// The arena is memory behind the rings, where payload lies that is not carried by frames: the
// program says where in START. docs/attach.md specifies it.
const (
	// arenaLeast is the shortest payload that this client has there: what is shorter takes as long in frames.
	arenaLeast = 16 << 10
	// arenaBlock is what the lengths of this client's blocks are multiples of.
	arenaBlock = 4 << 10
)

// span is a part of an arena. Its length is 0 if there is none.
type span struct{ at, n int }

func (b span) end() int { return b.at + b.n }

// arena is a client's: it says which blocks are in use. Its methods but write and close are called
// with the client locked.
type arena struct {
	free []span // in order, none of them adjacent

	// using guards mem, which is nil when the connection has ended.
	using sync.RWMutex
	mem   []byte
}

func (a *arena) open(mem []byte) {
	a.mem = mem
	if n := len(mem) &^ (arenaBlock - 1); n > 0 {
		a.free = []span{{0, n}}
	}
}

// take returns a block for n bytes, if there is one: the first, so that no more of the arena is
// used than needed, and what processors have in their caches.
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

// put gives a block back, or none.
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

// close returns when the memory is not used any longer.
func (a *arena) close() {
	a.using.Lock()
	defer a.using.Unlock()
	a.mem = nil
}
