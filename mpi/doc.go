// Package mpi is the Message Passing Interface for Go programs: point-to-point
// messages between the ranks of a cluster, FPGAs among them, collective calls,
// and communicators.
//
// Package mpi/job runs a program as all ranks in one process, or as one rank of a cluster, and
// gives each rank its world communicator. New makes one from any mpe.Device. The calls are those of the MPI standard.
// Buffers are slices of numbers, whose lengths are the counts. Calls that wait take a
// context first: when it ends, they are cancelled, the buffers are the caller's again,
// and the error says who waits for whom.
//
// # Examples
//
// Whole programs are in the folder examples of this module, from hello, in 23 lines, to jacobi and kmeans:
//
//	go run github.com/zrlmpi/zrlmpid/examples/hello
//
// docs/examples.md describes them. Examples of single calls are in mpi/example_test.go.
//
// # Progress, threads and order
//
// Any number of goroutines may use a communicator (MPI_THREAD_MULTIPLE).
// Operations make progress while no goroutine waits for them. Messages from one rank to
// another in one communicator do not overtake each other: of two that a receive
// matches, it gets the one sent first.
//
// # Datatypes
//
// The type of a slice's elements is the datatype of its message. The functions that transfer slices call methods of Comm,
// which transfer buffers whose elements may be of derived datatypes (package datatype), such as the columns of a matrix:
// Typed gives one in a slice. StructType
// is the datatype of a struct. To peers whose wire distinguishes int and float, a datatype of float32 only is float,
// and every other one int.
//
// # Collective calls
//
// Barrier, Bcast, Gather, Scatter, Allgather, Alltoall, Reduce, Allreduce,
// ReduceScatter, Scan and Exscan are made by all members of a communicator, in the
// same order, with the same type, root, operation and options. Those whose names end
// with v have blocks of different lengths, and those that begin with I return a
// request at once, of which any number may be under way. Such a request can be neither
// cancelled nor freed before it has ended. Messages of a collective call never match
// other messages, nor those of other calls.
//
// Lengths are checked: Allreduce, for instance, wants two slices of the same length. A
// call is in place (MPI_IN_PLACE) if the caller gives the same memory for both: the same
// slice to Reduce at the root, Allreduce, Scan, Exscan and Alltoall; its own block of recv
// as send to Gather, at the root, and Allgather; its own block of send as recv to Scatter,
// at the root; the beginning of send as recv to ReduceScatter. Any other overlap is
// ErrBuffer.
//
// The device chooses the algorithm, by the collective, the number of ranks and the
// length, or goes by its configuration. By and Segment choose in its place. Where the
// order of additions makes a difference, as with floats, it is that of the algorithm, so
// the last bits of a sum may change with it, and with the number of ranks; they do not
// change from one run to the next. All ranks of Allreduce get the same bits. Operations
// of OpOf that are not commutative are carried out in the order of ranks.
//
// When a call fails on a rank, or its context ends, it fails on all ranks that have not
// done their part, at once or when they make the call: the others are notified, and their
// errors match collective.ErrCallFailed and say which rank has abandoned it, and why
// (*collective.CallFailedError). That does not reach ranks whose messages carry no tags, such as
// deployed nodes: their calls wait until their contexts end. In a communicator with such
// ranks the others are notified of calls that are under way there; one that is made later
// waits until its context ends. The error of the rank itself says which step waited for whom, and
// names ranks of the world. Later calls do not receive messages of the failed one.
//
// # Ranks that end
//
// When a rank shuts down, is restarted or cannot be reached, and this is known, receives that
// are posted to it by name, and probes that wait for its messages, end with an error that
// matches mpe.ErrPeerLost. What is posted later waits for the rank's return. Receives and
// probes from AnySource go on.
//
// # Communicators
//
// Each communicator has a number, 0 for the world and a multiple of 4, which travels with its
// messages; the library's own messages, those of collective calls among them, carry
// one of the next three. To make a
// communicator, its members agree on the highest of the numbers that each of
// them would use next. So no rank ever has two communicators of one number, and
// messages of one are never received in another.
//
// Partitioned communication (Comm.PsendInit, PrecvInit) has messages of their own between two ranks, which match no others.
//
// Attributes (NewKeyval), topologies (CartCreate, GraphCreate, DistGraphCreate) and their neighbourhood collectives
// belong to a communicator; Dup keeps them. An intercommunicator (IntercommCreate) is a communicator whose messages go
// to the ranks of another group. It has collective calls of its own, but no Scan and no Exscan. They and
// neighbourhood collectives are messages between pairs of ranks: a rank whose call fails does not notify the others.
//
// # Deployed nodes
//
// What a peer's wire cannot carry is an error before anything is sent, or one of
// these rules:
//
//   - To and from peers whose wire carries no tags (profile cloudfpga), any tag
//     is allowed, and messages match in the order in which they were sent and
//     receives posted. The status has the tag that the receive asked for. A
//     receive from AnySource over the world needs AnyTag or tag 0 while the
//     cluster has such peers. Tags of profile v0.9 are 0 to 255.
//   - Messages to and from them are whole numbers of 32-bit words; an FPGA takes
//     no empty ones. Anything else is ErrCount.
//   - They distinguish float32 from int. Every other type travels as int. A []uint8 or
//     []int8 receives both.
//   - A probe does not know the length of their messages: Count is Undefined.
//   - They know the world only. Dup and Split of a communicator that has them, and what is like these calls, is
//     ErrComm; Create makes one without them. A matched probe does not take messages from them.
//   - Collective calls over the world are messages like others to them, with the
//     same limits: whole words, no message without content (a barrier's
//     has a word), tag 0, and int or float32. They match in the order in which they
//     were sent and receives posted: do not send messages with tag 0 to such peers
//     while a collective call is under way. There is one call at a time; a second
//     one is ErrPending. Messages of a failed call may match those of later ones.
//   - Unless By says otherwise, Bcast, Scatter, Gather and Reduce are carried out as by
//     upstream's compiler: the root exchanges with one rank after another in the order
//     of ranks, or by a tree if the configuration says so. Upstream's programs know no
//     other collective; ranks that are zrlmpids know all.
//
// # Errors
//
// Every error is an *Error with a Class of the standard. errors.Is(err,
// ErrTruncate) asks for the class, errors.As finds the cause.
//
// A collective call that a rank refuses, as for its count, counts as made there. The calls of the other members, from Barrier to Scan, end
// with an error of the same class that names the rank, if all members know communicators and the rank is no program attached to a daemon.
// So do Split and what is like it, also in such programs.
//
// The package must never start a goroutine, read a clock, or know what a device is made of.
package mpi
