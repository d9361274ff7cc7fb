// Package leasetest makes short calls in C (lib/c/fast.h), for tests of everything that leases or shares memory with C
// code. It is empty without cgo.
package leasetest
