// Package mpitest tests what package mpi promises, on any kind of device: its
// own, in memory, whose matching is a list that is searched from the front, and
// the real ones. It is for tests only.
package mpitest
