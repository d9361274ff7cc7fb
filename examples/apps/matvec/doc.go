// Package matvec computes the product of a matrix and a vector, row by row. Rank 0 has both, and deals the rows
// out to all ranks including itself, a few at a time. Each rank computes the elements of the result for its
// rows, and rank 0 gathers them.
//
// The algorithm is from Pires, Véstias and Neto, An Implementation of MPI on FPGA for Distributed Memory
// Multiprocessing, whose processors can store the vector and one row. docs/examples.md lists the messages.
//
// The rank that has a row adds its products up from left to right, as Serial does, and rounds each of them. The
// result is therefore identical to Serial's, to the last bit.
//
// The package must never let a message determine how much it allocates, beyond fixed bounds: Options.Words is
// the length of the longest message that it accepts, and a matrix has at most MaxSize rows and columns.
package matvec
