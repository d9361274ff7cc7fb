// Package mpemodel models the deployed FPGA's Message Passing Engine (MPE) and the MPI wrapper above it, with all their
// flaws. Tests run zrlmpid's engine against the model. Whatever packets the network loses or duplicates, the engine
// must exchange data with the model, and, as far as the protocol makes that possible, must never wedge it or corrupt
// its data.
//
// The model behaves like the public sources (cloudFPGA/ZRLMPI, commit eb8f70e), not like the protocol page: where the
// real MPE stalls, loses a packet or acknowledges corrupt data, so does the model. Its flaws must never be repaired,
// and it must never share code with zrlmpid's engine, because a test oracle that shares the engine's misunderstandings
// proves nothing. TestModelAgreesWithUpstreamMPE in internal/integration/cosim compares the model with the sources
// themselves.
//
// The model is pure: it uses no goroutine, clock, socket or randomness. The caller passes the time since an epoch of
// its choice to every call, passes in the datagrams that arrive, and collects the datagrams that are sent. Work inside
// the FPGA takes no time; only timeouts do.
//
// Modeled parts, from the network up:
//
//	Datagram → shell (drops unknown addresses) → input FIFO of 16-byte words,
//	and next to it a FIFO of source ranks → MPE state machine → data FIFO →
//	dequeuer (counts 8-byte lines) → wrapper (the caller's buffer)
//
// and the way back: wrapper → MPE → queue that fragments datagrams → TakePackets.
//
// Not modeled: the wrapper's variant for buffers in DRAM, the source port (all datagrams of a peer count as sent from
// one port), and the doubled timeouts of hardware whose state machine runs at half the clock.
package mpemodel
