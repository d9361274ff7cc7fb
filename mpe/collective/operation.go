package collective

import (
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Tags is how many numbers calls have: 1 to Tags, and then again.
const Tags = 1<<29 - 1

// Operation is a collective operation as this rank calls it, to be posted as one.
type Operation struct {
	// Call is what is asked for. Its ranks are those of Members. Order, FPGAs,
	// Token, Flows and Register are the device's to fill in; Segment and Form are set
	// by a caller who wants certain ones.
	Call coll.Call
	// Members has the rank of the world of each of the communicator's ranks.
	Members []int
	// Comm and Tag are what the messages bear: the number of a communicator of
	// which no other messages are, and that of the call, which must be the same
	// on all ranks and different for calls that overlap. Calls are numbered one
	// after another, from 1 to Tags, so that the abort
	// of a call that a rank has not made yet differs from that of an earlier one. Peers
	// that know no communicators get 0 for both: there, messages match by their order
	// alone.
	Comm uint32
	Tag  int
	// Send and Recv are the buffers, in bytes. They belong to the device until
	// the call has ended.
	Send, Recv []byte
	// Op is the operation of a reduction, on elements of Type; or User is, which
	// combines whole elements: inout = in ∘ inout. User is called by a goroutine of the
	// device, several times at once for different elements. Its error ends the call. It
	// must not call the device. CancelUser, if it is set, is called when the call is to
	// end with an error while User is running, and User has to return then. It must neither
	// wait nor call the device.
	Op         op.Op
	Type       op.Type
	User       func(in, inout []byte) error
	CancelUser func(cause error)
	// Datatype and AnyDatatype are as in mpe.Operation.
	Datatype    protocol.Datatype
	AnyDatatype bool
	// Algorithm is the name of the one to use; empty lets the device choose. It
	// must be the same on all ranks.
	Algorithm string
}
