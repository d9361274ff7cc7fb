// Package exchange provides the collective calls of the programs in folder apps, implemented in one of two ways: by
// package mpi, or by Send and Recv, like the code that upstream's compiler generates for an FPGA. That code has two
// forms: flat (com_opt 0), where Root exchanges with each rank, and a tree (com_opt 1 and higher), where it exchanges
// with the first of each four FPGAs, which forward the data of the rest. Ranks that use different implementations work
// together.
//
// All ranks have blocks of the same length, as in upstream's collectives.
//
// Receive buffers belong to the caller. The package must never allocate more than the blocks of four ranks.
package exchange
