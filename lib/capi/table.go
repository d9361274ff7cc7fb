package capi

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// table maps handles to the objects of one kind. A lookup takes no lock.
type table[T any] struct {
	kind kind
	base uint64
	// predefined holds the objects named in the ABI, indexed by the lower bits of their handles.
	predefined [predefinedLen]entry[T]

	chunks atomic.Pointer[[]*[chunkLen]slot[T]]
	mu     sync.Mutex
	free   []uint32
	next   uint32
}

// entry is a predefined object. Its handle is stored because several handles have the same lower bits.
type entry[T any] struct {
	handle uint64
	object *T
}

// slot holds an object that the program has made. It is never freed, so that a stale handle cannot reach other memory.
type slot[T any] struct {
	inUse  atomic.Bool
	object T
}

const (
	// predefinedLen is so large that no two predefined handles of an ABI have the same index.
	predefinedLen = 1 << 10
	chunkLen      = 256
	// maxObjects is the maximum number of objects of a kind. Handles of MPICH's ABI have 24 bits for the
	// object.
	maxObjects = 1 << 24
)

func newTable[T any](a *abi, k kind) *table[T] {
	return &table[T]{kind: k, base: a.firstHandle[k]}
}

// define makes a predefined handle of the ABI refer to an object.
func (t *table[T]) define(handle uint64, object *T) {
	e := &t.predefined[handle%predefinedLen]
	if e.object != nil && e.handle != handle {
		panic(fmt.Sprintf("capi: handles %#x and %#x of a %s have the same index", handle, e.handle, kindNames[t.kind]))
	}
	*e = entry[T]{handle, object}
}

// get returns the object with the given handle, or nil.
func (t *table[T]) get(handle uint64) *T {
	if e := &t.predefined[handle%predefinedLen]; e.handle == handle && e.object != nil {
		return e.object
	}
	return t.dynamicObject(handle)
}

// findOrFail returns the object with the given handle. If there is no such object, it fails the call with an error of
// the given class.
func findOrFail[T any](t *table[T], handle uint64, class mpi.Class) *T {
	object := t.get(handle)
	if object == nil {
		panic(invalidHandle(class, t.kind, handle))
	}
	return object
}

// invalidHandle returns the failure of a call whose handle is invalid.
func invalidHandle(class mpi.Class, k kind, handle uint64) failure {
	return failf(class, "the %s handle %#x is invalid or has been freed", kindNames[k], handle)
}

// dynamicObject returns the object with the given handle if alloc made it, or nil.
func (t *table[T]) dynamicObject(handle uint64) *T {
	s := t.slot(handle)
	if s == nil || !s.inUse.Load() {
		return nil
	}
	return &s.object
}

// slot returns the slot of a handle, in use or not, or nil if no object ever had the handle.
func (t *table[T]) slot(handle uint64) *slot[T] {
	i := handle - t.base
	chunks := t.chunks.Load()
	if handle < t.base || chunks == nil || i >= uint64(len(*chunks))*chunkLen {
		return nil
	}
	return &(*chunks)[i/chunkLen][i%chunkLen]
}

// alloc returns a new zero object and its handle.
func (t *table[T]) alloc() (object *T, handle uint64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var i uint32
	if n := len(t.free); n > 0 {
		i, t.free = t.free[n-1], t.free[:n-1]
	} else {
		if t.next == maxObjects {
			return nil, 0, errorf(mpi.ErrOther, "there are %d of kind %s already", maxObjects, kindNames[t.kind])
		}
		i = t.next
		t.next++
		if chunks := t.chunks.Load(); chunks == nil || int(i) >= len(*chunks)*chunkLen {
			var more []*[chunkLen]slot[T]
			if chunks != nil {
				more = *chunks
			}
			more = append(more, new([chunkLen]slot[T])) // not visible to concurrent readers
			t.chunks.Store(&more)
		}
	}
	handle = t.base + uint64(i)
	s := t.slot(handle)
	s.inUse.Store(true)
	return &s.object, handle, nil
}

// newObject allocates an object in a table, and stores its handle at the address in argument i. If that address is
// null, it allocates no object.
func newObject[T any](a *args, t *table[T], i int) (object *T, handle uint64) {
	p := a.checkedPointer(i)
	object, handle, err := t.alloc()
	check(err)
	a.lib.setHandleAt(p, 0, handle)
	return object, handle
}

// newObjectOr is like newObject, but calls undo if it fails.
func newObjectOr[T any](a *args, t *table[T], i int, undo func()) (object *T, handle uint64) {
	err := attempt(func() { object, handle = newObject(a, t, i) })
	if err != nil {
		undo()
	}
	check(err)
	return object, handle
}

// removeObject removes an object made by newObject, and overwrites its handle with the null handle.
func removeObject[T any](a *args, t *table[T], i int, handle uint64) {
	t.remove(handle)
	a.lib.setHandleAt(a.pointer(i), 0, a.lib.abi.null[t.kind])
}

// remove removes an object made by alloc. Predefined objects remain.
func (t *table[T]) remove(handle uint64) {
	s := t.slot(handle)
	if s == nil || !s.inUse.Load() {
		return
	}
	var none T
	s.inUse.Store(false)
	s.object = none
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free = append(t.free, uint32(handle-t.base))
}
