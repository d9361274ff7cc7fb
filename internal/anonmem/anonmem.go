// Package anonmem gives buffers that take memory as they are written to, and give it
// back to the system at once when they are not needed any more. They are not on Go's
// heap: there a buffer takes all of its memory when it is made, and after it has been
// dropped it takes it until the next collection.
package anonmem

import "math/bits"

// Least is the length in bytes from which a buffer is outside Go's heap.
const Least = 64 << 10

// steps is how many sizes of buffers there are for each power of two. What a buffer has
// more than was asked for is less than 1/steps of it.
const steps = 8

// size returns the size of a buffer of n bytes: those of about the same length can take
// each other's place.
func size(n int) int {
	step := 1 << max(bits.Len(uint(n-1))-bits.Len(steps), 0)
	return (n + step - 1) &^ (step - 1)
}
