package metrics

import "slices"

// histogram counts times in native buckets. It allocates only octaves that are not empty.
type histogram struct {
	zero uint64 // times of 0
	// sum is that of all times, in nanoseconds. The sum for a million
	// receives of a day each exceeds an integer.
	sum float64
	// at is where in chunks an octave is, counted from 1; 0 if it is empty.
	at     [octaves + 1]uint8
	chunks [][perOctave]uint64
}

// add counts a time whose bucket is key.
func (h *histogram) add(key int, ns uint64) {
	h.sum += float64(ns)
	at := h.at[key/perOctave]
	if at == 0 {
		at = h.grow(key / perOctave)
	}
	h.chunks[at-1][key%perOctave]++
}

func (h *histogram) grow(octave int) uint8 {
	h.chunks = append(h.chunks, [perOctave]uint64{})
	h.at[octave] = uint8(len(h.chunks))
	return h.at[octave]
}

func (h *histogram) empty() bool { return h.zero == 0 && len(h.chunks) == 0 }

// clone returns a copy that does not change.
func (h *histogram) clone() histogram {
	c := *h
	c.chunks = slices.Clone(h.chunks)
	return c
}

// buckets yields the native buckets that are not empty, by their indices.
func (h *histogram) buckets(yield func(key int, n uint64) bool) {
	for octave, at := range h.at {
		if at == 0 {
			continue
		}
		for i, n := range h.chunks[at-1] {
			if n > 0 && !yield(octave*perOctave+i+minKey, n) {
				return
			}
		}
	}
}

// count returns the number of times.
func (h *histogram) count() uint64 {
	count := h.zero
	for _, n := range h.buckets {
		count += n
	}
	return count
}
