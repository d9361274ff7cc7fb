package collective

import (
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Tags is the number of different tags of calls, 1 to Tags. Numbering wraps around.
const Tags = 1<<29 - 1

// Operation is a collective call of this rank, as it is posted.
type Operation struct {
	// Call describes the call. Its ranks are indexes of Members. The device sets Order, FPGAs, Token, Flows and Shared;
	// callers may set Segment and OrderForm.
	Call coll.Call
	// Members lists the world rank of each rank of the communicator.
	Members []int
	// Comm and Tag are the communicator and tag of the messages. No other messages may use the communicator. Tag is
	// the number of the call, which must be the same on all ranks and different for calls that overlap. Calls are
	// numbered sequentially, from 1 to Tags, so that the abort of a future call differs from the abort of an earlier
	// one. Peers that do not know communicators receive 0 for both; with them, messages match by order alone.
	Comm uint32
	Tag  int
	// Send and Recv are the buffers. They belong to the device until the end of the call.
	Send, Recv []byte
	// Op is the operation of a reduction on elements of Type. If User is set, it combines whole elements instead:
	// inout = in ∘ inout. Goroutines of the device call User, several at once for different elements. An error from
	// User ends the call. User must not call the device. If the call is about to end with an error while User is
	// running, the device calls CancelUser, if set; User must then return. CancelUser must neither block nor call
	// the device.
	Op         op.Op
	Type       op.Type
	User       func(in, inout []byte) error
	CancelUser func(cause error)
	// Datatype and AnyDatatype are as in mpe.Operation.
	Datatype    protocol.Datatype
	AnyDatatype bool
	// Algorithm is the name of an algorithm; if it is empty, the device chooses one. It must be the same on all
	// ranks.
	Algorithm string
}
