// Package anonmem provides buffers that occupy memory only as they are written to, and return it to the system as
// soon as they are freed. They are outside of Go's heap, where a buffer occupies all of its memory from its
// allocation, and after it has been dropped until the next collection.
package anonmem

import "math/bits"

// MinMapped is the minimum length, in bytes, of buffers that are allocated outside of Go's heap.
const MinMapped = 64 << 10

// sizesPerOctave is the number of buffer sizes between two powers of two. Because lengths are rounded up to the next
// size, less than 1/sizesPerOctave of a buffer is unused.
const sizesPerOctave = 8

// roundSize returns the size of the buffer that is allocated for n bytes. It is rounded up so that a freed buffer can
// be reused for requests of similar lengths.
func roundSize(n int) int {
	step := 1 << max(bits.Len(uint(n-1))-bits.Len(sizesPerOctave), 0)
	return (n + step - 1) &^ (step - 1)
}
