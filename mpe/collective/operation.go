package collective

import (
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Tags is the number of different tags for calls. The tags are 1 to Tags; after Tags, they start again at 1.
const Tags = 1<<29 - 1

// Operation describes a collective call that this rank is about to post.
type Operation struct {
	// Call describes the call, with ranks that are indexes of Members. The device sets Order, FPGAs, Token, Flows and
	// Shared; callers may set Segment and OrderForm.
	Call coll.Call
	// Members lists the world ranks of the communicator's members, in the order of their ranks in the communicator.
	Members []int
	// Comm is the communicator of the messages, which no other messages may use. Tag is the number of the call, equal
	// on all ranks. Callers must number calls sequentially, from 1 to Tags, so that overlapping calls differ, and
	// aborts of future and earlier calls as well. On wires without communicators, messages carry neither, and match by
	// order alone.
	Comm uint32
	Tag  int
	// Send and Recv are the buffers. The device owns them until the call ends.
	Send, Recv []byte
	// Op is the operation of a reduction on elements of Type. If User is not nil, it combines whole elements instead:
	// inout = in ∘ inout. The device calls User from several goroutines at once, for different elements. User must not
	// call the device; its error ends the call. If the call is about to end with an error while User is running, the
	// device calls CancelUser, if set, and User must then return. CancelUser must neither block nor call the device.
	Op         op.Op
	Type       op.Type
	User       func(in, inout []byte) error
	CancelUser func(cause error)
	// Datatype and AnyDatatype are as in mpe.Operation.
	Datatype    protocol.Datatype
	AnyDatatype bool
	// Algorithm is the name of an algorithm, equal on all ranks. If it is empty, the device chooses the algorithm.
	Algorithm string
}
