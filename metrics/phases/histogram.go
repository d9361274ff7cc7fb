package phases

import "slices"

// Histogram counts times in native buckets. It allocates memory only for non-empty octaves.
type Histogram struct {
	ZeroCount uint64 // number of times equal to 0
	// Sum is the sum of all times in nanoseconds. It is a float because an int64 would overflow after about 100,000
	// receives of one day each.
	Sum float64
	// chunkIndex maps each octave to its position in chunks, counted from 1, or to 0 if the octave is empty.
	chunkIndex [numOctaves + 1]uint8
	chunks     [][PerOctave]uint64
}

// Add counts a time of ns nanoseconds.
func (h *Histogram) Add(ns uint64) {
	if ns == 0 {
		h.ZeroCount++
		return
	}
	h.addToBucket(bucketKey(ns), ns)
}

// addToBucket counts a time of ns nanoseconds in the bucket with the given key.
func (h *Histogram) addToBucket(key int, ns uint64) {
	h.Sum += float64(ns)
	at := h.chunkIndex[key/PerOctave]
	if at == 0 {
		at = h.addChunk(key / PerOctave)
	}
	h.chunks[at-1][key%PerOctave]++
}

func (h *Histogram) addChunk(octave int) uint8 {
	h.chunks = append(h.chunks, [PerOctave]uint64{})
	h.chunkIndex[octave] = uint8(len(h.chunks))
	return h.chunkIndex[octave]
}

// IsEmpty reports whether no times have been counted.
func (h *Histogram) IsEmpty() bool { return h.ZeroCount == 0 && len(h.chunks) == 0 }

// clone returns an independent copy of h.
func (h *Histogram) clone() Histogram {
	c := *h
	c.chunks = slices.Clone(h.chunks)
	return c
}

// MaxBuckets returns an upper limit of the number of buckets that Buckets yields.
func (h *Histogram) MaxBuckets() int { return len(h.chunks) * PerOctave }

// Buckets yields the index and the count of each non-empty native bucket.
func (h *Histogram) Buckets(yield func(key int, n uint64) bool) {
	for octave, at := range h.chunkIndex {
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

// Count returns the number of times counted.
func (h *Histogram) Count() uint64 {
	count := h.ZeroCount
	for _, n := range h.Buckets {
		count += n
	}
	return count
}
