// Package mpe implements the engine of one local rank: a Message Passing Engine in software. Callers post
// sends and receives. The engine matches receives with messages, exchanges packets with peers, writes payload
// directly into posted buffers, and completes requests.
//
// Any number of goroutines may post and wait. A caller starts an operation with Engine.Post, SendNow or
// StartCollective, and ends it with Request.Await or Test.
//
// As MPI requires, a receive gets the oldest message that matches it, and a message goes to the oldest receive that
// matches it. Matching ignores attributes that the profile of a peer does not carry: a cloudfpga message has tag 0
// and belongs to the world, and a receive from a cloudfpga peer matches by order, whatever its tag.
//
// Package core holds the state of an engine and makes all decisions. Engine is the driver around it, with
// lock, clock, timer, random numbers, and the goroutines that read, write and compute. The driver must never
// decide the fate of a message, log (the core notifies an Observer), or call its core without the lock.
//
// Read device.go and transport.go first: the interfaces above and below. engine.go has the Engine and its
// processing of events. engine_post.go starts operations, and engine_request.go has a started operation.
// engine_poll.go and engine_source.go receive packets, engine_write.go sends them, and engine_placement.go places
// payload. Each other file implements one kind of call. names.go re-exports the names of package core that belong
// to this package's interface.
package mpe
