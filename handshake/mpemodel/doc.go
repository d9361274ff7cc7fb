// Package mpemodel is a model of the deployed FPGA's Message Passing Engine
// (MPE) and of the MPI wrapper above it, with all their flaws. Tests hold our
// engine against it: whatever the network loses or duplicates, our side must
// exchange data with this one, and must never wedge or corrupt it where the
// wire allows that.
//
// The model follows the behaviour of the public sources (cloudFPGA/ZRLMPI,
// commit eb8f70e), not the protocol page: where the real MPE stalls, eats a
// packet or acknowledges corrupt data, so does the model. It must never be
// repaired, and it must never share code with our engine: an oracle that knows
// our opinion is none. TestModelAgreesWithUpstreamMPE in
// internal/integration/cosim holds it against the sources themselves.
//
// It is pure: no goroutine, clock, socket or randomness. The caller passes the
// time since an epoch of its own choice into every call, hands in datagrams
// that arrive, and collects those that are sent. Work inside the FPGA takes no
// time; only time-outs do.
//
// What is modelled, from the network up:
//
//	Datagram → shell (drops unknown addresses) → input FIFO of 16-byte words,
//	and beside it one of source ranks → MPE state machine → data FIFO →
//	dequeuer (counts 8-byte lines) → wrapper (the caller's buffer)
//
// and the way back: wrapper → MPE → queue that fragments datagrams → Out.
//
// What is not: the wrapper's variant for buffers in DRAM, the source port (all
// of a peer's datagrams count as sent from one), and the doubled time-outs of
// hardware whose state machine runs at half the clock.
package mpemodel
