// Package exchange is the collective calls of the programs in folder apps, made in one
// of two ways: by those of package mpi, or as upstream's compiler puts loops over Send
// and Recv in their place (com_opt 0), which is what the program of an FPGA is made of.
// Ranks of both kinds meet.
//
// It must never allocate: what a message is received into is the caller's.
package exchange
