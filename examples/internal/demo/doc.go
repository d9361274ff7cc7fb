// Package demo is what the examples have in common: flags, a cluster of ranks, the
// result as a table or JSON, and exit codes.
//
// An example is a program of one rank. If the environment of mpi.Init is set, it
// is run as that rank, of a daemon or in this process; otherwise all ranks of a
// cluster are run at once in this process, over UDP on the loopback interface. The
// example does not know which.
package demo
