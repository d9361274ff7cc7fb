// Package mpi is the Message Passing Interface for Go programs: point-to-point
// messages between the ranks of a cluster, FPGAs among them, and communicators.
//
// Init gives a program its world communicator, from the environment that a
// launcher has set; New makes one from a device. The calls are those of the MPI
// standard. Buffers are slices of numbers, whose lengths are the counts. Calls
// that wait take a context first: when it ends, what they wait for is taken
// back, the buffers are the caller's again, and the error says who waits for
// whom.
//
// # Progress, threads and order
//
// Any number of goroutines may use a communicator (MPI_THREAD_MULTIPLE).
// Operations go on while nobody waits for them. Messages from one rank to
// another in one communicator do not overtake each other: of two that a receive
// matches, it gets the one sent first.
//
// # Communicators
//
// Each communicator has an even number, 0 for the world, which travels with its
// messages; the library's own messages bear the next odd one. To make a
// communicator, its members agree on the highest of the numbers that each of
// them would use next. So no rank ever has two communicators of one number, and
// messages of one are never received in another.
//
// # Deployed nodes
//
// What a peer's wire cannot carry is an error before anything is sent, or one of
// these rules:
//
//   - To and from peers whose wire carries no tags (profile cloudfpga), any tag
//     is allowed, and messages match in the order in which they were sent and
//     receives posted. The status tells the tag that the receive asked for. A
//     receive from AnySource over the world needs AnyTag or tag 0 while the
//     cluster has such peers. Tags of profile v0.9 are 0 to 255.
//   - Messages to and from them are whole numbers of 32-bit words; an FPGA takes
//     no empty ones. Anything else is ErrCount.
//   - They tell float32 from int. Every other type travels as int. A []uint8 or
//     []int8 receives both.
//   - A probe does not know the length of their messages: Count is Undefined.
//   - They know the world only. Dup and Split of a communicator that has them is
//     ErrComm; Create makes one without them.
//
// # Errors
//
// Every error is an *Error with a Class of the standard. errors.Is(err,
// ErrTruncate) asks for the class, errors.As finds the cause.
//
// The package must never start a goroutine, look at a clock, or know what a
// device is made of.
package mpi
