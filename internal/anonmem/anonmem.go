// Package anonmem provides buffers that occupy memory only as they are written to, and return it to the system as
// soon as they are freed. They are outside of Go's heap, where a buffer occupies all of its memory from its
// allocation, and after it has been dropped until the next collection.
package anonmem

import "math/bits"

// MinMapped is the length in bytes from which buffers are outside of Go's heap.
const MinMapped = 64 << 10

// sizesPerOctave is the number of sizes of buffers for each power of two. It limits the excess of a buffer over the
// requested length to less than 1/sizesPerOctave of the buffer.
const sizesPerOctave = 8

// roundSize returns the size of a buffer of n bytes. It is rounded up, so that buffers of similar lengths can replace
// each other.
func roundSize(n int) int {
	step := 1 << max(bits.Len(uint(n-1))-bits.Len(sizesPerOctave), 0)
	return (n + step - 1) &^ (step - 1)
}
