// Package op is the reduction operations of MPI on bytes that hold numbers as they are
// on the wire, least significant byte first.
//
// It is pure code: functions from bytes to bytes. It must never keep anything, allocate,
// or depend on where in memory its arguments lie.
//
// # What is computed
//
// Each element is computed alone, as inout[i] = in[i] ∘ inout[i], in this order of
// operands, with one rounding per operation to the element's own type. So the bits of
// a result depend on the order in which a schedule combines, and on nothing else: not
// on the length, nor on how loops are unrolled. Integers wrap around. MAX and MIN of
// floats are Go's max and min: a NaN on either side gives a NaN, and −0 is below +0.
// The logical operations give 1 and 0. MAXLOC and MINLOC take the smaller index of
// equal values; a value that is not a number loses to any other.
package op
