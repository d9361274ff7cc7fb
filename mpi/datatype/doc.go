// Package datatype describes where in memory the elements of a message are (the derived
// datatypes of the MPI standard, chapter 5), and copies them to and from contiguous memory. A
// Type is made of others by the constructors of the standard. It never changes, and any number
// of goroutines may use it.
//
// Displacements and extents are in bytes, relative to the buffer that a call is given; elements
// may lie in front of it. Sizes are int64: the standard's MPI_Count.
//
// It must never access memory outside of what a type describes, interpret an element, or take time
// or memory in proportion to the number of its elements, other than to copy them.
package datatype
