// Package mpe is the engine of one local rank: a Message Passing Engine in
// software. Callers post sends and receives; the engine matches receives with
// messages (package match), drives the state machines of its peers with what the
// transport brings, writes payload straight into posted buffers and completes
// requests.
//
// Any number of goroutines may post and wait. The engine must never interpret a packet
// itself (packages handshake and extended do), never log (it notifies an Observer), never
// write to a buffer that has been returned to its caller, and never allocate by what the
// wire claims.
//
// Order: a receive gets the oldest message that fits it, and a message the oldest
// receive, as MPI demands. What the profile of a peer does not carry takes no
// part: a cloudfpga message has tag 0 and belongs to the world, and a receive
// that names a cloudfpga peer matches by order, whatever its tag.
//
// The package has two halves. The core is the engine's state: it takes calls, packets, the
// time and what its driver has done for it, one event at a time, and gives back packets,
// requests that have ended, and the time of its next deadline. It has neither lock nor clock
// nor goroutine (a test checks that). Engine is the driver around it, in the files engine*.go:
// lock, clock, timer, random numbers, and the goroutines that read, write and compute.
//
// The core's files, in the order in which a message meets them: post.go starts an operation,
// request.go is one; core.go takes packets in and ends every event (flush); peer.go is
// what is kept of a peer, and its link, which peer_handshake*.go implements for the
// cloudfpga and v0.9 profiles and peer_extended*.go, packets.go, single_copy.go, inbox.go
// and outbox.go for the extended one; match.go matches receives and messages, inbound.go
// is a message that arrives, placement.go where its payload is placed, self.go what a
// rank sends to itself; timer.go acts on deadlines. cancel.go cancels, probe.go probes,
// waits.go says what waits, and waits_text.go how that reads; report.go, counters.go and
// status.go report. collectives.go gives package collective what it needs to execute
// collective calls, and flow.go sends a message on while it arrives.
package mpe
