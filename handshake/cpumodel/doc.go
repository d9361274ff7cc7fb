// Package cpumodel is a model of a rank on upstream's deployed CPU library (LIB/SW), with all its flaws. Tests run our
// engine against it: whatever packets the network loses or duplicates, our side must exchange data with the model, and
// must never make it deliver wrong words or crash where the wire allows that.
//
// The model follows the behavior of the public sources (cloudFPGA/ZRLMPI, commit eb8f70e), not the protocol page: where
// the library stores a retransmitted header as payload, overruns its buffer or waits forever, so does the model. It
// must never be repaired, and must never share code with our engine: an oracle that shares our opinion proves nothing.
//
// It is pure: no goroutine, clock, socket or randomness. The caller passes the time since an epoch of its choice to
// every call, hands in the datagrams that arrive, and collects the datagrams that are sent. Work of the process takes
// no time, except the library's pauses in long messages. Time passes in waits, and while the caller stalls the process.
//
// Modeled parts, from the network up:
//
//	Datagram → the socket's receive buffer → one wait for one header at a time,
//	and next to it one deferred header per source rank → MPI_Send or MPI_Recv
//
// A process that is not in a call reads nothing: datagrams remain in the socket until the next call.
//
// Not modeled: source ports (the library ignores them), how the kernel rounds time-outs and accounts the memory of a
// datagram, and random memory contents of the process. A wait begins with 32 zero bytes where the library has an
// uninitialized array, and a receive with a zeroed buffer where it has memory from malloc. This matters only for
// datagrams of less than 32 bytes, whose missing bytes the library takes from there.
package cpumodel
