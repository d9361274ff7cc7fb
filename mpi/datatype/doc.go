// Package datatype describes where in memory the elements of a message are (the derived datatypes of the MPI
// standard, chapter 5), and copies them to and from contiguous memory. The standard's constructors make a Type
// from other types. A Type is immutable and safe for concurrent use.
//
// Displacements and extents are in bytes, relative to the buffer passed to a call. Elements may lie before the
// start of the buffer. Sizes are int64, like the standard's MPI_Count.
//
// The package must never access memory outside the elements that a type describes, and must never interpret an
// element. Except for copying, no operation may take time or memory proportional to the number of elements.
package datatype
