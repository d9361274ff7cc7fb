package mpe

import (
	"sync"

	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// StartCollective posts a collective call. The caller may reuse c when StartCollective returns; the engine owns the
// buffers of c until the call ends.
//
// The error is a *coll.CallError if the call or its algorithm is invalid. It matches ErrLength if a peer's wire cannot
// carry one of the messages, or it matches ErrRank, ErrClosed or op.ErrUndefined. In all these cases nothing was sent.
// A later failure ends the call with a *collective.StepError.
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

// RefuseCollective makes the other members' calls with number c.Tag fail with a *collective.CallFailedError of the
// given cause, because this rank does not make the call. It is a no-op if a member's profile carries no communicators.
// It reads only Members, Comm and Tag of c, and the collective and this rank's number in c.Call.
func (e *Engine) RefuseCollective(c *collective.Operation, cause collective.FailureCause) {
	e.lock()
	defer e.unlock()
	e.core.RefuseCall(c, cause)
}

// FreeCommunicator drops the members' agreements about a communicator (collective.Operation.Comm) and releases its slot
// of the shared buffers. Calls in progress continue. The caller must make no further collective call in the
// communicator, and must not reuse its number.
func (e *Engine) FreeCommunicator(comm uint32) {
	e.lock()
	defer e.unlock()
	e.core.FreeCommunicator(comm)
}

// ProgramEnded prepares a rank that programs use one after the other for the next program. All operations of the last
// program must have been abandoned. ProgramEnded drops the agreements of the members of communicators, and the aborts
// of calls that were not made here, because the next program may use the same communicator numbers for other members,
// and its peers may have been restarted. Calls that wait for an agreement are not affected. ProgramEnded also drops the
// messages matched by receives of the last program. clean means that the program exited by itself: messages that a
// deployed node sends from now on are then for the next program, unless operations with the node were abandoned.
func (e *Engine) ProgramEnded(clean bool) {
	e.lock()
	defer e.unlock()
	e.core.ProgramEnded(clean)
}

// executions recycles the memory that completed collective calls used.
var executions = sync.Pool{New: func() any { return new(collective.Execution) }}
