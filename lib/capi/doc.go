// Package capi is MPI as C programs call it, on top of package mpi: it translates handles, constants and
// statuses of an ABI, and nothing else. Each call has a number, its place in functions.txt, and up to ten arguments of
// 64 bits each, as C passes them. Communicators, groups, datatypes and requests are those of package mpi.
//
// It is pure Go. C functions, such as those of user operations, are called by the program that loads it (Callbacks). It must
// never keep a pointer to the arguments, nor write more than an ABI says that there is room for.
package capi
