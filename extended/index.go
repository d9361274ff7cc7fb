package extended

import "math/bits"

// index is a map from numbers to values with constant-time access. Unlike a Go map, it does not allocate while its
// number of keys does not grow. A nil index is empty.
type index[K ~uint32 | ~uint64, V comparable] struct {
	slots []indexed[K, V] // length is a power of two; at most three quarters are used
	count int32
	// shift is 64 minus the binary logarithm of the number of slots: slotFor uses the upper bits of a product.
	shift uint8
}

type indexed[K ~uint32 | ~uint64, V comparable] struct {
	key   K
	value V // 0 if the slot is free
}

func (x *index[K, V]) len() int {
	if x == nil {
		return 0
	}
	return int(x.count)
}

// slotFor returns the slot at which the search for a key begins. The multiplier is 2⁶⁴ divided by the golden ratio,
// which spreads both consecutive keys and multiples of a number.
func (x *index[K, V]) slotFor(key K) int {
	return int(uint64(key) * 0x9e3779b97f4a7c15 >> x.shift)
}

// get returns the value stored for a key, or 0 if the key is not in the index.
func (x *index[K, V]) get(key K) (value V) {
	if x.len() == 0 {
		return value
	}
	for i := x.slotFor(key); x.slots[i].value != value; i = (i + 1) & (len(x.slots) - 1) {
		if x.slots[i].key == key {
			return x.slots[i].value
		}
	}
	return value
}

// put adds a key that is not in the index. The value must not be 0, which marks free slots.
func (x *index[K, V]) put(key K, value V) {
	if 4*int(x.count+1) > 3*len(x.slots) {
		x.resize(max(16, 2*len(x.slots)))
	}
	var free V
	i := x.slotFor(key)
	for x.slots[i].value != free {
		i = (i + 1) & (len(x.slots) - 1)
	}
	x.slots[i] = indexed[K, V]{key, value}
	x.count++
}

// resize moves all entries to a table of n slots. n must be a power of two.
func (x *index[K, V]) resize(n int) {
	old := x.slots
	x.slots, x.count = make([]indexed[K, V], n), 0
	x.shift = uint8(64 - bits.TrailingZeros(uint(n)))
	var free V
	for _, s := range old {
		if s.value != free {
			x.put(s.key, s.value)
		}
	}
}

// remove removes a key and returns its value, or 0 if the key is not in the index. It moves later entries into the gap,
// because a search would stop there.
func (x *index[K, V]) remove(key K) (value V) {
	if x.len() == 0 {
		return value
	}
	var free V
	mask, i := len(x.slots)-1, x.slotFor(key)
	for x.slots[i].key != key && x.slots[i].value != free {
		i = (i + 1) & mask
	}
	if value = x.slots[i].value; value == free {
		return value
	}
	for j := (i + 1) & mask; x.slots[j].value != free; j = (j + 1) & mask {
		if home := x.slotFor(x.slots[j].key); (j-home)&mask >= (j-i)&mask {
			x.slots[i] = x.slots[j]
			i = j
		}
	}
	x.slots[i] = indexed[K, V]{}
	x.count--
	return value
}
