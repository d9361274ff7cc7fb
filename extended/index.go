package extended

import "math/bits"

// index finds records by a number in constant time. Unlike a map it allocates
// nothing while as many records come as go.
type index[T any] struct {
	slots []indexed[T] // a power of two, at most half full
	count int32
	shift uint8
}

type indexed[T any] struct {
	key    uint64
	record *T // nil: the slot is free
}

// at is where the search for a key begins. The multiplier is 2⁶⁴ divided by the
// golden ratio: it spreads keys that follow each other, and multiples.
func (x *index[T]) at(key uint64) int {
	return int(key * 0x9e3779b97f4a7c15 >> x.shift)
}

// get returns the record of a key, or nil.
func (x *index[T]) get(key uint64) *T {
	if x.count == 0 {
		return nil
	}
	for i := x.at(key); x.slots[i].record != nil; i = (i + 1) & (len(x.slots) - 1) {
		if x.slots[i].key == key {
			return x.slots[i].record
		}
	}
	return nil
}

// put adds a record whose key has none yet.
func (x *index[T]) put(key uint64, record *T) {
	if 2*int(x.count+1) > len(x.slots) {
		x.resize(max(16, 2*len(x.slots)))
	}
	i := x.at(key)
	for x.slots[i].record != nil {
		i = (i + 1) & (len(x.slots) - 1)
	}
	x.slots[i] = indexed[T]{key, record}
	x.count++
}

func (x *index[T]) resize(n int) {
	old := x.slots
	x.slots, x.count = make([]indexed[T], n), 0
	x.shift = uint8(64 - bits.TrailingZeros(uint(n)))
	for _, s := range old {
		if s.record != nil {
			x.put(s.key, s.record)
		}
	}
}

// remove takes a key out, if it is there. What follows moves up, so that no
// search ends too soon.
func (x *index[T]) remove(key uint64) {
	if x.count == 0 {
		return
	}
	mask := len(x.slots) - 1
	i := x.at(key)
	for x.slots[i].key != key || x.slots[i].record == nil {
		if x.slots[i].record == nil {
			return
		}
		i = (i + 1) & mask
	}
	for j := (i + 1) & mask; x.slots[j].record != nil; j = (j + 1) & mask {
		if home := x.at(x.slots[j].key); (j-home)&mask >= (j-i)&mask {
			x.slots[i] = x.slots[j]
			i = j
		}
	}
	x.slots[i] = indexed[T]{}
	x.count--
}

// clear forgets every record, and keeps no more room than a few need.
func (x *index[T]) clear() { *x = index[T]{} }
