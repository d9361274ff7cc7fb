// Package capi implements MPI as C programs call it, on top of package mpi. It translates the handles,
// constants and statuses of an ABI, and does nothing else; package mpi implements communicators, groups,
// datatypes and requests. Each call has a number, which is its index in functions.txt, and up to maxArgs 64-bit
// arguments, as passed by C.
//
// The package is pure Go. The program that loads it calls C functions, such as user operations, on its behalf
// (see Callbacks). The package must never keep a pointer to the arguments, nor write more memory than the ABI
// allows.
package capi
