// Package core is the state of an engine and all that it decides: requests, matching,
// buffers, completion and cancellation, for one local rank. It takes one event at a time,
// with its time: a call, packets, a deadline, or the end of what its driver has done for
// it. The driver is package mpe, or a simulation.
//
// What an event does at once goes through the driver's Effects: packets, placements, copies
// from a peer's memory. The rest is in the Outcome of the event: requests that have ended,
// callers to wake, jobs, and the deadline.
//
// A core must never have a goroutine, clock, lock, channel or randomness (a test reads the
// source), never interpret a packet (packages handshake and extended do), never log (it
// notifies an Observer), never write to a buffer that its caller has back, and never
// allocate by what the wire claims. All methods of Core, but those whose comment says
// otherwise, need the driver's lock.
//
// Read config.go and effects.go first: what a core is given, and what it gives back. The
// other files, in the order in which a message meets them: core.go has the core, takes
// packets in and ends every event (flush); operation.go is what callers ask for, post.go
// starts it, and request.go is an operation that was started. peer.go is what is kept of
// a peer, and its link, which peer_handshake*.go implements for the cloudfpga and v0.9
// profiles and peer_extended*.go, packets.go, short.go, single_copy.go, inbox.go and
// outbox.go for the extended one. match.go matches receives and messages, inbound.go is
// a message that arrives, unexpected.go one that waits, placement.go where its payload
// is placed, self.go what a rank sends to itself; timer.go acts on deadlines. cancel.go
// cancels, probe.go probes, room.go refuses what a peer has no room for, and
// restingsends.go keeps sends that libraries no longer follow. waits.go says what waits;
// report.go, counters.go and status.go report. collectives.go gives package collective what it needs to execute collective calls, and
// flow.go sends a message on while it arrives.
package core
