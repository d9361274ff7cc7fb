// Package mpemodel is a model of the deployed FPGA's Message Passing Engine (MPE) and of the MPI wrapper above it, with
// all their flaws. Tests run our engine against it: whatever packets the network loses or duplicates, our side must
// exchange data with the model, and must never wedge it or corrupt its data where the wire allows that.
//
// The model follows the behavior of the public sources (cloudFPGA/ZRLMPI, commit eb8f70e), not the protocol page: where
// the real MPE stalls, eats a packet or acknowledges corrupt data, so does the model. It must never be repaired, and
// must never share code with our engine: an oracle that shares our opinion proves nothing.
// TestModelAgreesWithUpstreamMPE in internal/integration/cosim compares it with the sources themselves.
//
// It is pure: no goroutine, clock, socket or randomness. The caller passes the time since an epoch of its choice to
// every call, hands in the datagrams that arrive, and collects the datagrams that are sent. Work inside the FPGA takes
// no time; only time-outs do.
//
// Modeled parts, from the network up:
//
//	Datagram → shell (drops unknown addresses) → input FIFO of 16-byte words,
//	and next to it a FIFO of source ranks → MPE state machine → data FIFO →
//	dequeuer (counts 8-byte lines) → wrapper (the caller's buffer)
//
// and the way back: wrapper → MPE → queue that fragments datagrams → Out.
//
// Not modeled: the wrapper's variant for buffers in DRAM, the source port (all datagrams of a peer count as sent from
// one port), and the doubled time-outs of hardware whose state machine runs at half the clock.
package mpemodel
