// Package capi is MPI as C programs call it, on top of package mpi: it translates handles, constants and statuses of an
// ABI, and nothing else. Each call has a number, its index in functions.txt, and up to maxArgs arguments of 64 bits, as
// passed by C. Package mpi implements communicators, groups, datatypes and requests.
//
// It is pure Go. The program that loads it calls C functions, such as user operations, on its behalf (Callbacks). It
// must never keep a pointer to the arguments, nor write more than the ABI allows.
package capi
