package mpe

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/protocol"
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
	// SendNow sends a message at once, if that takes no Op, and reports whether it has. If not, nothing has happened, and
	// the message is for Start. The arguments are those of an Operation of the kind OpSend, one by one, as an Operation
	// does not fit into registers.
	SendNow(peer, tag int, comm uint32, buf []byte, datatype protocol.Datatype, blocking bool) bool
	// Resting returns the sends that the device takes back, or nil if it takes none.
	Resting() RestingSends
	// StartCollective posts a collective call. See collective.Operation.
	StartCollective(c *collective.Operation) (Op, error)
	// RefuseCollective ends the other members' calls of the number c.Tag with an error of the cause, as this rank does
	// not make the call. A device that cannot notify them does nothing.
	RefuseCollective(c *collective.Operation, cause collective.FailureCause)
	// FreeCommunicator notes that no further collective call is made in a communicator (collective.Operation.Comm), whose
	// number is not used again.
	FreeCommunicator(comm uint32)
	// Probe finds a message that a receive with these would get, without
	// receiving it. It waits for one until ctx ends, if wait is set.
	Probe(ctx context.Context, m Match, wait bool) (Status, bool, error)
	// Await waits for a value on c, from Op.Notify, or for ctx, whose cause it
	// returns. Meanwhile it carries messages, as Op.Await does.
	Await(ctx context.Context, c <-chan struct{}) error
	// Close ends the device's operations and gives the rank back.
	Close(ctx context.Context) error
}

// Minimal is embedded in a Device that takes an operation for each message, and cannot notify the other members of a
// communicator.
type Minimal struct{}

// SendNow sends nothing.
func (Minimal) SendNow(int, int, uint32, []byte, protocol.Datatype, bool) bool { return false }

// Resting returns nil.
func (Minimal) Resting() RestingSends { return nil }

// RefuseCollective does nothing.
func (Minimal) RefuseCollective(*collective.Operation, collective.FailureCause) {}

// FreeCommunicator does nothing.
func (Minimal) FreeCommunicator(uint32) {}

// RestingSends are sends that a library entrusts to its device, as many others wait to the same peer: a program may have
// millions. All that the library keeps of one is its number.
type RestingSends interface {
	// MayRest reports whether a send may be left to the device. It does not change later.
	MayRest(op Op) bool
	// Rest leaves a send to the device, which MayRest was true for or Wake has returned, whether it has ended or not.
	// The Op is the device's then, and its payload stays in the caller's buffer. The number of a send stays the same.
	Rest(op Op, o *Origin) Resting
	// Wake returns the Op of a send that was left, what it was posted for, and its origin. It is to be left again, or
	// freed and then forgotten. It is nil if the send was forgotten or is awake.
	Wake(n Resting) (Op, Operation, *Origin)
	// Pending reports whether a send that was left has not ended, and is not awake.
	Pending(n Resting) bool
	// Forget ends the use of a number, and reports whether it was in use. A send that has not ended goes on, and its
	// outcome is dropped.
	Forget(n Resting) bool
}

// Op is a posted operation. One goroutine at a time may wait for it.
type Op interface {
	// Await waits for the operation to end, and returns its status, which is valid until Free. When ctx ends first, the
	// operation is cancelled, its buffer is the caller's again, and the error is a *WaitError.
	Await(ctx context.Context) (*Status, error)
	// Test reports whether the operation has ended, and how.
	Test() (Status, bool, error)
	// Ended is Test that does not poll. The status is nil if the operation has not ended, or if the device would have to
	// poll to know, and is valid until Free.
	Ended() (*Status, error)
	// Library is where a library keeps what belongs to the operation, or nil. It is the library's alone, and stays when
	// the operation is freed, for the next one that has its memory.
	Library() *any
	// Cancel asks for the operation to be cancelled. It ends in any case as
	// far as Await is concerned: with ErrCancelled if that succeeded, and as if
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
