package mpe

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Device is the interface between a message passing library and a rank: non-blocking operations on bytes, which
// match by source, tag and communicator. An Engine implements it, and so does a client that is attached to a rank
// of a daemon. Its methods may be called by any number of goroutines.
type Device interface {
	// Rank returns the rank in the cluster. Size returns the number of ranks of the cluster.
	Rank() int
	Size() int
	// Peer describes another rank, or this one.
	Peer(rank int) (PeerInfo, error)
	// Start posts a send or a receive. The device owns the buffer until the operation ends.
	Start(op Operation) (Op, error)
	// SendNow sends a message immediately if that is possible without an Op, and reports whether it has done so. If
	// it has not, the call had no effect, and the caller has to use Start. The arguments are the fields of an
	// Operation of kind OpSend; they are passed one by one because an Operation does not fit into registers.
	SendNow(peer, tag int, comm uint32, buf []byte, datatype protocol.Datatype, blocking bool) bool
	// Resting returns the interface for resting sends, or nil if the device does not support them.
	Resting() RestingSends
	// StartCollective posts a collective call. See collective.Operation.
	StartCollective(c *collective.Operation) (Op, error)
	// RefuseCollective makes the other members' calls with number c.Tag fail with cause, because this rank
	// does not make the call. A device that cannot notify the members does nothing.
	RefuseCollective(c *collective.Operation, cause collective.FailureCause)
	// FreeCommunicator notes that there will be no further collective call in a communicator
	// (collective.Operation.Comm). Its number is not reused.
	FreeCommunicator(comm uint32)
	// Probe returns the status of the message that a receive with m would get, without receiving it. If wait is
	// set, it waits for such a message until ctx is done.
	Probe(ctx context.Context, m Match, wait bool) (Status, bool, error)
	// Await waits for a value on c, which is the channel of an Op.Notify. If ctx is done first, it returns the
	// cause. While it waits, it makes progress on messages, as Op.Await does.
	Await(ctx context.Context, c <-chan struct{}) error
	// Close ends the device's operations and releases the rank.
	Close(ctx context.Context) error
}

// BasicDevice can be embedded in a Device that uses an Op for each message and cannot notify the other members of a
// communicator.
type BasicDevice struct{}

// SendNow returns false.
func (BasicDevice) SendNow(int, int, uint32, []byte, protocol.Datatype, bool) bool { return false }

// Resting returns nil.
func (BasicDevice) Resting() RestingSends { return nil }

// RefuseCollective does nothing.
func (BasicDevice) RefuseCollective(*collective.Operation, collective.FailureCause) {}

// FreeCommunicator does nothing.
func (BasicDevice) FreeCommunicator(uint32) {}

// RestingSends holds sends that a library leaves to its device while many other sends wait for the same peer. A
// program may have millions of such sends. The library keeps only the number of each send.
type RestingSends interface {
	// MayRest reports whether a send may be left to the device. The answer never changes.
	MayRest(op Op) bool
	// Rest leaves a send to the device, pending or not. MayRest must be true for the send, or Wake must have
	// returned it. The device owns the Op from then on; the payload stays in the caller's buffer. A send keeps its
	// number when it is left again.
	Rest(op Op, o *Origin) RestingID
	// Wake returns the Op of a send that was left, the operation that it was posted for, and its origin. The caller
	// must leave it again, or free it and then call Forget. Wake returns a nil Op if the send was forgotten or has
	// already been woken.
	Wake(n RestingID) (Op, Operation, *Origin)
	// Pending reports whether a send that was left is incomplete, and has not been woken.
	Pending(n RestingID) bool
	// Forget releases a number, and reports whether it was in use. An incomplete send continues, but its outcome is
	// lost.
	Forget(n RestingID) bool
}

// Op is a posted operation. Only one goroutine at a time may wait for it.
type Op interface {
	// Await waits for the end of the operation, and returns its status, which is valid until Free. If ctx is done
	// first, the operation is cancelled, its buffer is returned to the caller, and the error is a *WaitError.
	Await(ctx context.Context) (*Status, error)
	// Test reports whether the operation is done, and returns its status and error.
	Test() (Status, bool, error)
	// Result is like Test, but does not poll. The status is valid until Free. It is nil if the operation is not
	// done, or if the device would have to poll to find out.
	Result() (*Status, error)
	// LibraryData returns storage for the library's data about the operation, or nil. The device does not touch it. The
	// storage persists when the operation is freed, and is reused by the next operation in the same memory.
	LibraryData() *any
	// Cancel requests cancellation. Await returns in any case: ErrCancelled if the operation was cancelled, or its
	// regular result if it was too late to cancel.
	Cancel()
	// Notify makes the device send a value to c, without blocking, when the operation ends, or immediately if it is
	// already done. Notify(nil) revokes an earlier call.
	Notify(c chan<- struct{})
	// Free returns the memory of a completed operation to the device for reuse. The operation must not be used
	// afterwards, by any goroutine. The garbage collector frees operations that are not freed explicitly.
	Free()
}
