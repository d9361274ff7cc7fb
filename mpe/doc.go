// Package mpe is the engine of one local rank: a Message Passing Engine in
// software. Callers post sends and receives; the engine matches receives with
// messages (package match), drives the state machines of its peers with what the
// transport brings, writes payload straight into posted buffers and completes
// requests.
//
// Any number of goroutines may post and wait; one background goroutine per
// transport reads. The engine must never interpret a packet itself (packages
// handshake and extended do), never log (an Observer is told), never write to a
// buffer whose owner has been given it back, and never allocate by what the wire
// claims.
//
// Order: a receive gets the oldest message that fits it, and a message the oldest
// receive, as MPI demands. What the profile of a peer does not carry takes no
// part: a cloudfpga message has tag 0 and belongs to the world, and a receive
// that names a cloudfpga peer matches by order, whatever its tag.
//
// The files: engine.go runs the rank and its timer; request.go is an operation,
// post.go begins one, match.go joins receives and messages, inbound.go is a
// message on its way in; peer.go is what is kept of a peer, peer_pair.go drives
// the handshake of the cloudfpga and v0.9 profiles, peer_extended.go and
// packets.go the extended one, self.go what a rank sends to itself; probe.go,
// cancel.go and status.go are what their names say.
package mpe
