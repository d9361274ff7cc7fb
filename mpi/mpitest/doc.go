// Package mpitest tests the guarantees of package mpi on any kind of device. It is used with real devices, and
// with its own in-memory device, which matches messages by searching a list from the front. The package is for
// tests only.
package mpitest
