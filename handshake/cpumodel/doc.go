// Package cpumodel is a model of a rank on upstream's deployed CPU library
// (LIB/SW), with all its flaws. Tests hold our engine against it: whatever the
// network loses or duplicates, our side must exchange data with this one, and must
// never have it deliver wrong words or crash where the wire allows that.
//
// The model follows the behaviour of the public sources (cloudFPGA/ZRLMPI,
// commit eb8f70e), not the protocol page: where the library stores a
// retransmitted header as payload, overruns its buffer or waits forever, so
// does the model. It must never be repaired, and it must never share code with
// our engine: an oracle that knows our opinion is none.
//
// It is pure: no goroutine, clock, socket or randomness. The caller passes the
// time since an epoch of its own choice into every call, hands in datagrams
// that arrive, and collects those that are sent. Work of the process takes no
// time, except the pauses that the library makes in long messages; time passes
// in waits, and while the caller says that the process does not run.
//
// What is modelled, from the network up:
//
//	Datagram → the socket's receive buffer → one wait for one header at a time,
//	and beside it one deferred header per source rank → MPI_Send or MPI_Recv
//
// A process that is not in a call reads nothing: datagrams stay in the socket
// until the next call.
//
// What is not: source ports (the library ignores them), how the kernel rounds
// time-outs and counts the memory of a datagram, and what the memory of the
// process holds by chance. A wait begins with 32 zero bytes where the library
// has an uninitialised array, and a receive with a buffer of zeros where it has
// memory from malloc. This matters only to datagrams of less than 32 bytes,
// whose missing bytes the library takes from there.
package cpumodel
