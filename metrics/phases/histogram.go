package phases

import "slices"

// Histogram counts times in native buckets. It allocates only octaves that are not empty.
type Histogram struct {
	Zero uint64 // times of 0
	// Sum is that of all times, in nanoseconds. The sum for a million
	// receives of a day each exceeds an integer.
	Sum float64
	// at is where in chunks an octave is, counted from 1; 0 if it is empty.
	at     [octaves + 1]uint8
	chunks [][PerOctave]uint64
}

// Add counts a time of ns nanoseconds.
func (h *Histogram) Add(ns uint64) {
	if ns == 0 {
		h.Zero++
		return
	}
	h.add(keyOf(ns), ns)
}

// add counts a time whose bucket is key.
func (h *Histogram) add(key int, ns uint64) {
	h.Sum += float64(ns)
	at := h.at[key/PerOctave]
	if at == 0 {
		at = h.grow(key / PerOctave)
	}
	h.chunks[at-1][key%PerOctave]++
}

func (h *Histogram) grow(octave int) uint8 {
	h.chunks = append(h.chunks, [PerOctave]uint64{})
	h.at[octave] = uint8(len(h.chunks))
	return h.at[octave]
}

// Empty reports whether nothing was counted.
func (h *Histogram) Empty() bool { return h.Zero == 0 && len(h.chunks) == 0 }

// clone returns a copy that does not change.
func (h *Histogram) clone() Histogram {
	c := *h
	c.chunks = slices.Clone(h.chunks)
	return c
}

// Buckets yields the native buckets that are not empty, by their indices.
func (h *Histogram) Buckets(yield func(key int, n uint64) bool) {
	for octave, at := range h.at {
		if at == 0 {
			continue
		}
		for i, n := range h.chunks[at-1] {
			if n > 0 && !yield(octave*PerOctave+i+minKey, n) {
				return
			}
		}
	}
}

// Count returns the number of times.
func (h *Histogram) Count() uint64 {
	count := h.Zero
	for _, n := range h.Buckets {
		count += n
	}
	return count
}
