// Package exchange has the collective calls of the programs in folder apps, made in one
// of two ways: by those of package mpi, or by Send and Recv as upstream's compiler puts
// them in their place in the program of an FPGA. That has two forms: flat
// (com_opt 0), where Root walks over the ranks, and a tree (com_opt 1 and more), where it
// walks over the first of each four FPGAs, which forward what is for the others. Ranks
// that use either way work together.
//
// Blocks are of one length on all ranks, as upstream knows no others.
//
// Receive buffers belong to the caller. The package must never allocate more than the
// blocks of four ranks.
package exchange
