// Package mpe is the engine of one local rank: a Message Passing Engine in
// software. Callers post sends and receives; the engine matches receives with
// messages, exchanges packets with peers, writes payload straight into posted
// buffers and completes requests.
//
// Any number of goroutines may post and wait. A caller starts an operation with
// Engine.Post, SendNow or StartCollective, and ends it with Request.Await or Test.
//
// Order: a receive gets the oldest message that fits it, and a message the oldest
// receive, as MPI demands. What the profile of a peer does not carry takes no
// part: a cloudfpga message has tag 0 and belongs to the world, and a receive
// that names a cloudfpga peer matches by order, whatever its tag.
//
// Package core has the state of an engine and all decisions; Engine is the driver
// around it, with lock, clock, timer, random numbers, and the goroutines that read,
// write and compute. The driver must never decide what becomes of a message, log (the
// core notifies an Observer), or call its core without the lock.
//
// Read device.go and transport.go first, the interfaces above and below. Then engine.go,
// which has an engine and how it takes an event; engine_post.go starts operations and
// engine_request.go is one; engine_poll.go and engine_source.go take packets in,
// engine_write.go sends them, and engine_placement.go is where payload is placed. The
// other files are for one kind of call each. names.go has the names of package core that
// belong to this package's interface.
package mpe
