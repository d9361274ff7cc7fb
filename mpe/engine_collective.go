package mpe

import (
	"sync"

	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// StartCollective posts a collective call. c may be used again when it returns; its
// buffers belong to the engine until the call has ended.
//
// The error is a *coll.CallError if the call, or the algorithm that it names, cannot be;
// it matches ErrLength if a peer's wire cannot carry one of its messages, ErrRank,
// ErrClosed or op.ErrUndefined. Nothing has been sent then. What fails later is a
// *collective.StepError, and the end of the call.
func (e *Engine) StartCollective(c *collective.Operation) (Op, error) {
	r := requests.Get().(*Request)
	if err := e.core.Prepare(&r.core, executions.Get().(*collective.Execution), c); err != nil {
		return nil, err
	}
	r.e = e
	e.lock()
	defer e.unlock()
	e.posts++
	if err := e.core.StartCall(&r.core); err != nil {
		return nil, err
	}
	return r, nil
}

// RefuseCollective ends the other members' calls of the number c.Tag with a *collective.CallFailedError of
// the cause, as this rank does not make the call. It does nothing in a communicator of which a member
// knows no communicators. Of c it uses Members, Comm, Tag and, of Call, the collective and this rank's number.
func (e *Engine) RefuseCollective(c *collective.Operation, cause collective.FailureCause) {
	e.lock()
	defer e.unlock()
	e.core.RefuseCall(c, cause)
}

// FreeCommunicator notes that no further collective call is made in a communicator (collective.Operation.Comm), whose number is not used again.
// Those under way go on. What its members have agreed on is dropped, and its slot of the shared buffers can be used again.
func (e *Engine) FreeCommunicator(comm uint32) {
	e.lock()
	defer e.unlock()
	e.core.FreeCommunicator(comm)
}

// ProgramEnded is for a rank that programs use one after another, when a program is gone and all of its operations were
// abandoned. It drops what the members of communicators have agreed on, and the aborts of calls that were not made
// here: the communicators of the next program may have the same numbers and other members, and its peers may have been
// restarted, and have to agree again. Calls that wait until their members have agreed are not changed. It also drops
// messages that receives of the program had matched. Clean says that the program has ended by itself, so that what a
// deployed node sends from now on is for the next one, unless operations with it had to be abandoned.
func (e *Engine) ProgramEnded(clean bool) {
	e.lock()
	defer e.unlock()
	e.core.ProgramEnded(clean)
}

// executions are collective calls that are over, for reuse: their memory stays with them.
var executions = sync.Pool{New: func() any { return new(collective.Execution) }}
