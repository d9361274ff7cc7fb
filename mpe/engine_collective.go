package mpe

import (
	"sync"

	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// StartCollective posts a collective call. The caller may reuse c when StartCollective returns; the engine owns the
// buffers of c until the call ends.
//
// The error is a *coll.CallError if the call, or the algorithm that it names, is invalid. It matches
// ErrLength if a peer's wire cannot carry one of the messages, ErrRank, ErrClosed or op.ErrUndefined. Nothing
// was sent in these cases. A later failure is a *collective.StepError, and ends the call.
func (e *Engine) StartCollective(c *collective.Operation) (Op, error) {
	request := requests.Get().(*Request)
	if err := e.core.Prepare(&request.core, executions.Get().(*collective.Execution), c); err != nil {
		return nil, err
	}
	request.engine = e
	e.lock()
	defer e.unlock()
	e.postCount++
	if err := e.core.StartCall(&request.core); err != nil {
		return nil, err
	}
	return request, nil
}

// RefuseCollective makes the other members' calls with number c.Tag fail with a *collective.CallFailedError
// of the given cause, because this rank does not make the call. It does nothing if a member of the
// communicator has a profile without communicators. It reads Members, Comm and Tag of c and, of c.Call, the
// collective and this rank's number.
func (e *Engine) RefuseCollective(c *collective.Operation, cause collective.FailureCause) {
	e.lock()
	defer e.unlock()
	e.core.RefuseCall(c, cause)
}

// FreeCommunicator notes that there will be no further collective call in a communicator
// (collective.Operation.Comm). Its number is not reused. Calls in progress continue. The members' agreements
// are dropped, and the communicator's slot of the shared buffers becomes available.
func (e *Engine) FreeCommunicator(comm uint32) {
	e.lock()
	defer e.unlock()
	e.core.FreeCommunicator(comm)
}

// ProgramEnded notes that a program ended and that all of its operations were abandoned. It is for a rank that programs
// use one after the other. It drops the agreements of the members of communicators, and aborts of calls that were not
// made here: the communicators of the next program may have the same numbers and other members, and its peers may have
// been restarted and have to agree again. Calls that are waiting for an agreement are not affected. It also drops
// messages that receives of the program had matched. clean means that the program ended by itself. Messages that a
// deployed node sends from now on are then for the next program, unless operations with the node were abandoned.
func (e *Engine) ProgramEnded(clean bool) {
	e.lock()
	defer e.unlock()
	e.core.ProgramEnded(clean)
}

// executions recycles the memory of completed collective calls.
var executions = sync.Pool{New: func() any { return new(collective.Execution) }}
