// Package mpe is the engine of one local rank: a Message Passing Engine in
// software. Callers post sends and receives; the engine queues them per peer,
// drives the handshake state machines with what the transport brings, writes
// payload straight into posted buffers and completes requests.
//
// Any number of goroutines may post and wait; one background goroutine reads
// the transport. The engine must never interpret a handshake packet itself
// (package handshake does), never log (an Observer is told), never write to a
// buffer whose owner has been given it back, and never allocate by what the
// wire claims.
//
// Order: messages between two ranks are matched in the order in which both
// sides posted them, as upstream's programs expect. A tag travels only in the
// v0.9 profile.
package mpe
