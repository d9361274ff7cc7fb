// Package op implements the reduction operations of MPI on bytes that hold numbers in wire format, least significant
// byte first.
//
// Its functions are pure: they must never keep state, allocate, or give results that depend on the location of their
// arguments in memory.
//
// # Results
//
// Each element is computed separately, as inout[i] = in[i] ∘ inout[i], in this order of operands, with one rounding per
// operation to the element's type. The bits of a result therefore depend only on the order in which a schedule
// combines, and not on lengths or on the unrolling of loops. Integers wrap around. MAX and MIN of floats are Go's max
// and min: a NaN on either side gives a NaN, and −0 is less than +0. The logical operations return 1 and 0. MAXLOC and
// MINLOC take the smaller index of equal values; a NaN loses to any other value.
package op
