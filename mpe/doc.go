// Package mpe implements the engine of one local rank: a Message Passing Engine in software. Callers post
// sends and receives. The engine matches receives with messages, exchanges packets with peers, writes payload
// directly into posted buffers, and completes requests.
//
// Any number of goroutines may post and wait. A caller starts an operation with Engine.Post, SendNow or
// StartCollective, and completes it with Request.Await or Test.
//
// As MPI requires, a receive gets the oldest message that matches it, and a message is delivered to the oldest receive
// that matches it. Matching ignores attributes that the profile of a peer does not carry: a cloudfpga message has tag 0
// and belongs to the world, and receives from a cloudfpga peer match in order, whatever their tags.
//
// Package core holds the state of an engine and makes all decisions. Engine drives the core: it provides the lock, the
// clock, the timer, random numbers, and the goroutines that read, write and compute. The driver must never decide the
// fate of a message, log (the core notifies an Observer), or call the core without the lock.
//
// Read device.go and transport.go first: the interfaces above and below. engine.go defines the Engine and processes its
// events. engine_post.go starts operations, and engine_request.go defines a started operation. engine_poll.go and
// engine_source.go receive packets, engine_write.go sends them, and engine_placement.go places payload. Each other file
// implements one kind of call. aliases.go re-exports the names of package core that belong to this package's interface.
package mpe
