// Package backsub solves systems of linear equations whose matrix is an upper triangle,
// by back substitution: from the last unknown to the first, each is computed from its
// own row and then put into all rows above. Rank 0 deals the rows out to all ranks, one
// after another and again from the first rank on. In each step the rank that has the row
// computes the unknown, the pivot, and sends it to all others. At last rank 0 gathers
// the unknowns.
//
// It is the program of Pires, Véstias and Neto, An Implementation of MPI on FPGA for
// Distributed Memory Multiprocessing, whose listing 1 is Serial, but for a slip: its
// outer loop has to count down. docs/examples.md lists the messages.
//
// A row is one rank's, which subtracts the products in the order of the steps, as Serial
// does, and rounds each of them. So the result is that of Serial to the last bit.
//
// The package must never allocate without bounds by what a message says: Options.Words
// is the longest that it takes, and a matrix has at most MaxSize rows.
package backsub
