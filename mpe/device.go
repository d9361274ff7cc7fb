package mpe

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// Device is what a message passing library needs of a rank: non-blocking
// operations on bytes, matched by source, tag and communicator. An Engine is
// one, and so is a client that is attached to a daemon's. Its methods may be
// called from any number of goroutines.
type Device interface {
	// Rank and Size are those of the whole cluster.
	Rank() int
	Size() int
	// Peer describes another rank, or this one.
	Peer(rank int) (PeerInfo, error)
	// Start posts a send or a receive. The buffer belongs to the device until
	// the operation has ended.
	Start(op Operation) (Op, error)
	// StartCollective posts a collective call. See collective.Operation.
	StartCollective(c *collective.Operation) (Op, error)
	// Probe finds a message that a receive with these would get, without
	// receiving it. It waits for one until ctx ends, if wait is set.
	Probe(ctx context.Context, m Match, wait bool) (Status, bool, error)
	// Await waits for a value on c, from Op.Notify, or for ctx, whose cause it
	// returns. Meanwhile it carries messages, as Op.Wait does.
	Await(ctx context.Context, c <-chan struct{}) error
	// Close ends the device's operations and gives the rank back.
	Close(ctx context.Context) error
}

// Op is a posted operation. One goroutine at a time may wait for it.
type Op interface {
	// Wait waits for the operation to end. When ctx ends first, the operation
	// is cancelled, its buffer is the caller's again, and the error is a
	// *WaitError.
	Wait(ctx context.Context) (Status, error)
	// Test reports whether the operation has ended, and how.
	Test() (Status, bool, error)
	// Cancel asks for the operation to be cancelled. It ends in any case as
	// far as Wait is concerned: with ErrCancelled if that succeeded, and as if
	// nothing had been asked if it was too late.
	Cancel()
	// Notify arranges for a value to be sent to c, without waiting for room,
	// when the operation ends; at once if it has. Notify(nil) revokes it.
	Notify(c chan<- struct{})
	// Free gives the device the memory of an operation that has ended, so that
	// another one can have it. The operation must not be used afterwards, by
	// anyone. An operation that is not freed is left to the garbage collector.
	Free()
}
