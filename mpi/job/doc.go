// Package job runs Go programs on package mpi as ranks: all ranks in one process, or one rank, as the environment
// selects.
//
//	func main() { job.Main(4, program) }
//
//	func program(ctx context.Context, world *mpi.Comm) error {
//		return mpi.Barrier(ctx, world)
//	}
//
// Main and Run call a function for each rank. Init returns the world communicator of one rank, and Device its device.
//
// The package links everything that a rank may need: transports, the configuration, and the client of a daemon. A
// program that makes its own mpe.Device needs only package mpi. This package must never start goroutines other than
// those in Run.
package job
