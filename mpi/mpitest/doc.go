// Package mpitest tests the guarantees of package mpi on any kind of device: its own in-memory device, which matches
// messages by searching a list from the front, and the real ones. It is for tests only.
package mpitest
