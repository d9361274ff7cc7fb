// Package exchange is the collective calls of the programs in folder apps, made in one
// of two ways: by those of package mpi, or as upstream's compiler puts Send and Recv in
// their place, which is what the program of an FPGA is made of. That has two forms: flat
// (com_opt 0), where Root walks over the ranks, and a tree (com_opt 1 and more), where it
// walks over the first of each four FPGAs, which pass on what is for the others. Ranks of
// both ways meet.
//
// Blocks are of one length on all ranks, as upstream knows no others.
//
// What a message is received into is the caller's. It must never allocate more than the
// blocks of four ranks.
package exchange
