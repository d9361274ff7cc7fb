// Package backsub solves systems of linear equations with an upper triangular matrix by back substitution. It
// goes from the last unknown to the first: each unknown is computed from its row, and then substituted into all
// rows above. Rank 0 deals the rows out to all ranks in turn. In each step, the rank that has the row computes
// the unknown, called the pivot, and sends it to all other ranks. At the end, rank 0 gathers the unknowns.
//
// The algorithm is from Pires, Véstias and Neto, An Implementation of MPI on FPGA for Distributed Memory
// Multiprocessing. Serial is Listing 1 of the paper, with one mistake corrected: its outer loop has to count
// down. docs/examples.md lists the messages.
//
// The rank that has a row subtracts the products in the order of the steps, as Serial does, and rounds each of
// them. The result is therefore identical to Serial's, to the last bit.
//
// The package must never let a message determine how much it allocates, beyond fixed bounds: Options.Words is
// the length of the longest message that it accepts, and a matrix has at most MaxSize rows.
package backsub
