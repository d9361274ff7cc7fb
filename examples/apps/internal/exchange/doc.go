// Package exchange provides the collective calls of the programs in folder apps. It implements them in one of
// two ways: by package mpi, or by Send and Recv, like the code that upstream's compiler generates for an FPGA.
// That code has two forms. In the flat form (com_opt 0), Root exchanges data with each rank. In the tree form
// (com_opt 1 and higher), Root exchanges data with the first FPGA of each group of four, which forwards the
// data of the others. Ranks that use different implementations work together.
//
// All ranks have blocks of the same length, as in upstream's collectives.
//
// Receive buffers belong to the caller. The package must never allocate more than the blocks of four ranks.
package exchange
