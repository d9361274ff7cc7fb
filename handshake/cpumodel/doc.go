// Package cpumodel models a rank that uses upstream's deployed CPU library (LIB/SW), with all its flaws. Tests run
// zrlmpid's engine against the model. Whatever packets the network loses or duplicates, the engine must exchange data
// with the model, and, as far as the protocol makes that possible, must never make it deliver wrong words or crash.
//
// The model behaves like the public sources (cloudFPGA/ZRLMPI, commit eb8f70e), not like the protocol page: where the
// library stores a retransmitted header as payload, overruns its buffer or waits forever, so does the model. Its flaws
// must never be repaired, and it must never share code with zrlmpid's engine, because a test oracle that shares the
// engine's misunderstandings proves nothing.
//
// The model is pure: it uses no goroutine, clock, socket or randomness. The caller passes the time since an epoch of
// its choice to every call, passes in the datagrams that arrive, and collects the datagrams that are sent. Time passes
// only in waits, in the library's pauses in long messages, and while the caller stalls the process.
//
// Modeled parts, from the network up:
//
//	Datagram → the socket's receive buffer → one wait for one header at a time,
//	and next to it one deferred header per source rank → MPI_Send or MPI_Recv
//
// A process that is not in a call reads nothing: datagrams remain in the socket until the next call.
//
// Not modeled: source ports (the library ignores them), how the kernel rounds timeouts and accounts the memory of a
// datagram, and random memory contents of the process. A wait begins with 32 zero bytes where the library has an
// uninitialized array, and a receive with a zeroed buffer where it has memory from malloc. The difference matters only
// for datagrams of less than 32 bytes, whose missing bytes the library takes from that memory.
package cpumodel
