// Package matvec is the product of a matrix and a vector, row by row: rank 0 has both,
// and deals the rows out to all ranks, itself among them, a few at a time. Each rank
// computes the numbers of the result that its rows make, and rank 0 gathers them.
//
// It is the program of Pires, Véstias and Neto, An Implementation of MPI on FPGA for
// Distributed Memory Multiprocessing, whose processors have room for the vector and
// one row. docs/examples.md lists the messages.
//
// A row is one rank's, which adds its products up from left to right, as Serial does,
// and rounds each of them. So the result is that of Serial to the last bit.
//
// The package must never allocate without bounds by what a message says: Options.Words
// is the longest that it takes, and a matrix has at most MaxSize rows and columns.
package matvec
