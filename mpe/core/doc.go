// Package core implements the state machine of an engine: requests, matching, buffers, completion and
// cancellation, for one local rank. It processes one event at a time, at a given time: a call, a batch of
// packets, a deadline, or the completion of an effect. Its driver is package mpe, or a simulation.
//
// An event takes effect in two ways. The core sends packets, places payload and copies from a peer's memory at once,
// through the driver's Effects. The Outcome of the event holds everything else: completed requests, callers to wake,
// jobs to run, and the next deadline.
//
// A core must never use a goroutine, clock, lock, channel or randomness (a test enforces this on the source), never
// interpret a packet (packages handshake and extended do), never log (it notifies an Observer), never write to a buffer
// that was returned to its caller, and never allocate by sizes that the wire claims. All methods of Core need the
// driver's lock, unless their comment says otherwise.
//
// Read config.go and effects.go first: the inputs and the outputs of a core. The other files follow a message. core.go
// defines the Core, which accepts packets and ends every event (flush). operation.go defines the operations that
// callers request, post.go starts them, and request.go defines a started operation. peer.go defines the state kept per
// peer and the interface of its link. peer_handshake*.go implement the link for the cloudfpga and v0.9 profiles;
// peer_extended*.go, packets.go, fast_path.go, single_copy.go, inbox.go and outbox.go for the extended profile.
// match.go matches receives and messages. inbound.go handles arriving messages, unexpected.go messages without a
// matching receive, placement.go direct placement of payload, and self.go messages to the rank itself. timer.go acts on
// deadlines. cancel.go cancels, probe.go probes, blocked_senders.go refuses sends for which a peer has no memory, and
// restingsends.go stores sends that libraries have handed over. waits.go describes pending operations; report.go,
// counters.go and status.go report. collectives.go connects package collective, which executes collective calls, and
// flow.go forwards a message while it arrives.
package core
