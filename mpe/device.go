package mpe

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Device is the interface between a message passing library and a rank: non-blocking operations on bytes, matched by
// source, tag and communicator. Engine implements it, as does the client of a rank attached to a daemon. Any number of
// goroutines may call its methods.
type Device interface {
	// Rank returns the local rank, and Size the number of ranks in the cluster.
	Rank() int
	Size() int
	// Peer describes another rank, or this one.
	Peer(rank int) (PeerInfo, error)
	// Start posts a send or a receive. The device owns the buffer until the operation ends.
	Start(op Operation) (Op, error)
	// SendNow sends a message immediately if that is possible without an Op, and reports whether it did so. If not, the
	// call has no effect and the caller must use Start. The arguments are the fields of an Operation of kind OpSend.
	// They are passed one by one because an Operation does not fit into registers.
	SendNow(peer, tag int, comm uint32, buf []byte, datatype protocol.Datatype, blocking bool) bool
	// Resting returns the interface to which sends can be handed over, or nil if the device does not support resting
	// sends.
	Resting() RestingSends
	// StartCollective posts a collective call. See collective.Operation.
	StartCollective(c *collective.Operation) (Op, error)
	// RefuseCollective informs the other members that this rank does not make the collective call with number c.Tag, so
	// that their calls fail with the given cause. A device that cannot notify the members does nothing.
	RefuseCollective(c *collective.Operation, cause collective.FailureCause)
	// FreeCommunicator releases the state that the device holds for a communicator (collective.Operation.Comm). The
	// caller must make no further collective call in the communicator, and must not reuse its number.
	FreeCommunicator(comm uint32)
	// Probe returns the status of the message that a receive with the criteria m would match, without receiving the
	// message. If wait is set, Probe waits for such a message until ctx is done.
	Probe(ctx context.Context, m Match, wait bool) (Status, bool, error)
	// Await waits for a value on c, a channel passed to Op.Notify. If ctx is done first, Await returns the cause. Like
	// Op.Await, it makes progress on messages while it waits.
	Await(ctx context.Context, c <-chan struct{}) error
	// Close ends the pending operations and releases the rank.
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

// RestingSends stores sends that a library hands over to its device while many other sends wait for the same peer. The
// library then keeps only a number per send, which saves memory in programs with millions of pending sends.
type RestingSends interface {
	// MayRest reports whether a send may be handed over to the device. For a given send, the answer never changes.
	MayRest(op Op) bool
	// Rest hands over a send, pending or not, to the device, which owns the Op from then on; the payload stays in the
	// caller's buffer. MayRest must be true for the send, or Wake must have returned it. A send that is handed over
	// again keeps its number.
	Rest(op Op, o *Origin) RestingID
	// Wake returns a resting send to the caller: its Op, its operation and its origin. The caller must either call Rest
	// again, or free the Op and call Forget. Wake returns a nil Op if the send was forgotten or has already been woken.
	Wake(n RestingID) (Op, Operation, *Origin)
	// Pending reports whether a send is resting and incomplete. It is false for a send that was woken.
	Pending(n RestingID) bool
	// Forget releases a send's number and reports whether it was in use. An incomplete send continues, but its outcome
	// is discarded.
	Forget(n RestingID) bool
}

// Op is a posted operation. At most one goroutine at a time may wait for its completion.
type Op interface {
	// Await waits until the operation completes, and returns its status, which is valid until Free. If ctx is done
	// first, Await cancels the operation, returns the buffer to the caller, and returns a *WaitError.
	Await(ctx context.Context) (*Status, error)
	// Test polls without blocking, reports whether the operation is complete, and returns its status and error.
	Test() (Status, bool, error)
	// Result is like Test, but does not poll. The status is valid until Free. It is nil if the operation is incomplete,
	// or if only a poll could show that it is complete.
	Result() (*Status, error)
	// LibraryData returns storage for the library's data about the operation, or nil. The device never reads or writes
	// it. The storage survives Free: the next operation in the same memory finds the data unchanged.
	LibraryData() *any
	// Cancel requests cancellation. Await then returns ErrCancelled, or the regular result if it was too late to
	// cancel.
	Cancel()
	// Notify makes the device send a value to c, without blocking, when the operation completes, or immediately if it
	// is already complete. Notify(nil) revokes an earlier call.
	Notify(c chan<- struct{})
	// Free returns the memory of a completed operation to the device for reuse. No goroutine may use the operation
	// afterwards. Calling Free is optional: the garbage collector frees the other operations.
	Free()
}
