// Package mpi is the Message Passing Interface for Go programs: point-to-point
// messages between the ranks of a cluster, FPGAs among them, collective calls,
// and communicators.
//
// Package mpi/job runs a program as all ranks in one process, or as one rank of a cluster, and passes its world
// communicator to each rank. New makes one from any mpe.Device. The calls follow the MPI standard. Buffers are slices
// of numbers; the length of a slice is the count. Calls that block take a context as their first argument: when it is
// done, the call is cancelled, the caller owns the buffers again, and the error names the ranks that wait for each
// other.
//
// # Examples
//
// Complete programs are in the folder examples of this module, from hello (23 lines) to jacobi and kmeans:
//
//	go run github.com/zrlmpi/zrlmpid/examples/hello
//
// docs/examples.md describes them. Examples of single calls are in mpi/example_test.go.
//
// # Progress, threads and order
//
// Any number of goroutines may use a communicator (MPI_THREAD_MULTIPLE). Operations make progress even if no goroutine
// waits for them. Messages from one rank to another in one communicator do not overtake each other: if two of them
// match a receive, it gets the one that was sent first.
//
// # Datatypes
//
// The type of a slice's elements is the datatype of its message. The functions that transfer slices call methods of
// Comm. These methods transfer a Buffer, whose elements may be of a derived datatype (package datatype), such as the
// columns of a matrix; Typed makes a Buffer from a slice. StructType returns the datatype of a struct. To peers whose
// wire distinguishes int and float, a datatype that consists of float32 only is sent as float, and any other as int.
//
// # Collective calls
//
// All members of a communicator call Barrier, Bcast, Gather, Scatter, Allgather, Alltoall, Reduce, Allreduce,
// ReduceScatter, Scan and Exscan in the same order, with the same type, root, operation and options. A name that ends
// with v marks a call whose blocks differ in length. A name that begins with I marks a nonblocking call: it returns a
// request, and any number of these may be pending. Such a request can be neither cancelled nor freed before it is done.
// Messages of a collective call never match point-to-point messages, or messages of another collective call.
//
// Lengths are checked: Allreduce, for instance, requires two slices of the same length. A call is in place
// (MPI_IN_PLACE) if the caller passes the same memory as both buffers: the same slice to Reduce at the root, Allreduce,
// Scan, Exscan and Alltoall; its own block of recv as send to Gather, at the root, and Allgather; its own block of send
// as recv to Scatter, at the root; the beginning of send as recv to ReduceScatter. Any other overlap is ErrBuffer.
//
// The device chooses the algorithm by the collective, the number of ranks and the length, or follows its configuration.
// WithAlgorithm and WithSegment override this choice. Where the order of additions matters, as with floats, it depends
// on the algorithm and the number of ranks, and so may the last bits of a sum; they do not change from one run to the
// next. All ranks of Allreduce get the same bits. Operations made by OpOf that are not commutative are applied in rank
// order.
//
// When a call fails on a rank, or its context is done, it fails on every rank that has not finished its part, either at
// once or when that rank makes the call. These ranks are notified; their errors match collective.ErrCallFailed and name
// the rank that abandoned the call, with the reason (*collective.CallFailedError). Ranks whose messages carry no tags,
// such as deployed nodes, cannot be notified: their calls wait until their contexts are done. In a communicator with
// such ranks, the other ranks are notified only of calls that are in progress there; a call made later waits until its
// context is done. The error of the failed rank itself gives the step and the rank that it waited for, as a rank of the
// world. Later calls do not receive messages of the failed one.
//
// # Ranks that shut down
//
// When the device learns that a rank has shut down, restarted or become unreachable, posted receives that name it as
// the source, and probes for its messages, fail with an error that matches mpe.ErrPeerLost. Receives posted later wait
// for the rank's return. Receives and probes from AnySource continue.
//
// # Communicators
//
// Each communicator has a number, which its messages carry: 0 for the world, and multiples of 4. The library's internal
// messages, such as those for collective calls, carry one of the three numbers that follow. To make a communicator, its
// members agree on the highest number that any of them would use next. So no rank ever has two communicators with the
// same number, and messages of one are never received in another.
//
// Partitioned communication (Comm.PsendInit, PrecvInit) uses separate messages between two ranks, which match no other
// messages.
//
// Attributes (NewKeyval), topologies (CartCreate, GraphCreate, DistGraphCreate) and neighbourhood collectives belong to
// a communicator; Dup copies attributes and topology. An intercommunicator (IntercommCreate) is a communicator whose
// messages go to the ranks of another group. It supports collective calls except Scan and Exscan. These calls and the
// neighbourhood collectives are messages between pairs of ranks: a rank whose call fails does not notify the other
// ranks.
//
// # Deployed nodes
//
// A message that a peer's wire cannot carry is rejected before anything is sent, unless one of these rules covers it:
//
//   - To and from peers whose wire carries no tags (profile cloudfpga), any tag
//     is allowed, and messages match in the order in which they were sent and
//     receives posted. The status has the tag that the receive asked for. A
//     receive from AnySource over the world needs AnyTag or tag 0 while the
//     cluster has such peers. Tags of profile v0.9 are 0 to 255.
//   - Messages to and from them are whole numbers of 32-bit words, and an FPGA
//     cannot receive an empty message. Anything else is ErrCount.
//   - They distinguish float32 from int. Every other type travels as int. A []uint8 or
//     []int8 receives both.
//   - A probe cannot determine the length of their messages: Count returns Undefined.
//   - They support only the world. Dup, Split and similar calls on a communicator that includes them
//     return ErrComm; Create makes one without them. A matched probe ignores their messages.
//   - Collective calls over the world are ordinary messages to them, with the same
//     limits: whole words, no empty message (a barrier sends one word), tag 0, and
//     int or float32. They match in the order in which they were sent and receives
//     posted: do not send messages with tag 0 to such peers while a collective call
//     is in progress. Only one call may be in progress; a second one is ErrPending.
//     Messages of a failed call may match receives of later calls.
//   - Unless WithAlgorithm selects another algorithm, Bcast, Scatter, Gather and Reduce use the
//     pattern of upstream's compiler: the root exchanges with the ranks one by one, in
//     rank order, or by a tree if the configuration selects it. Upstream's programs
//     have no other collectives; ranks that run zrlmpid have all collectives.
//
// # Errors
//
// Every error is an *Error with a Class of the standard. errors.Is(err, ErrTruncate) tests for the class, and errors.As
// finds the cause.
//
// A collective call that a rank rejects, for example because of its count, counts as made on that rank. The calls of
// the other members, from Barrier to Scan, then fail with an error of the same class that names the rank. This requires
// that all members support communicators, and that the rank is not a program attached to a daemon. Split and similar
// calls fail in the same way, also in attached programs.
//
// The package must never start a goroutine, read a clock, or depend on the implementation of a device.
package mpi
