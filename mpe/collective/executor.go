// Package collective executes collective operations: it runs the schedules of a rank's calls (package coll), hands
// their messages to the rank's engine, and ends the calls.
//
// An Executor has all collective calls of one rank. It acts only in events: the engine calls it when a call is made
// (Start), when a message or a user's function ends (MessageDone, JobDone), and when a message of another rank's
// Executor arrives (InternalOpened, InternalArrived). At the end of the event, the engine calls Advance, which begins
// the steps that have become possible. No step begins in the middle of an event. The interface Engine has everything
// that an Executor needs. An Executor has no lock, goroutine, clock or randomness; Check and Prepare may be called at
// any time.
//
// The files, in the order in which a call passes through them: operation.go and check.go describe and check it;
// agree.go lets the members of its communicator agree how to choose algorithms; start.go chooses one; order.go
// determines the order of a broadcast's chain; step.go executes steps, and shared.go the steps of schedules on shared
// buffers; end.go ends the call; abort.go and onabort.go abort it on other ranks; report.go reports.
package collective

import (
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

// Engine is the engine of an Executor's rank. All methods are called within an event of the engine. None of them
// calls Advance.
type Engine interface {
	Caller
	// Now returns the start time of the current event.
	Now() handshake.Instant
	// Random returns 64 random bits.
	Random() uint64

	// Start posts a message. If it succeeds, the engine calls Executor.MessageDone at the end of the message.
	Start(m *Message) error
	// Forward posts two messages with the same buffer. The send forwards the data while the receive is still in
	// progress, in pieces of at least recv.Piece bytes. If the send is so short that it will be sent eagerly,
	// Forward posts only recv and sets later.
	Forward(recv, send *Message) (later bool, err error)
	// Cancel ends a message without a report, if it was posted. After Cancel its buffer is no longer used.
	Cancel(m *Message)
	// WaitError returns the error for a message of a call whose caller's context ended with cause.
	WaitError(m *Message, cause error) error
	// HasAnswered reports whether anything was ever received from a rank of the world, or a connection to it was made.
	HasAnswered(rank int) bool
	// CauseOf returns the cause that is reported to other ranks for an error.
	CauseOf(err error) FailureCause

	// SendInternal sends a message of the Executor itself, unless the engine is closed. Internal must be true for comm.
	// If o is not nil, the engine calls Executor.OrderConfirmed when the message ends.
	SendInternal(rank int, comm, tag uint32, payload []byte, o *Ordering)
	// DiscardStale drops unexpected messages of a communicator: all messages with tags 1 to Tags, and all messages with
	// tag 0 except the newest from each rank.
	DiscardStale(comm uint32)
	// UnsentBytes returns the approximate number of bytes in messages that have not been completely sent.
	UnsentBytes() int

	// Shared returns the shared buffers of this rank's host, or nil if it has none.
	Shared() SharedBuffers

	// Compute starts a goroutine that calls j.Run outside of the event. When it returns, the engine calls
	// Executor.JobDone in a separate event.
	Compute(j Job)
	// Finish ends a call. The engine may reuse x.
	Finish(x *Execution, err error)
}

// Message is a send or a receive of a call's step.
type Message struct {
	// Call has the communicator and the datatype.
	Call *Operation
	Tag  int
	Send bool
	// Sync means that the send can be cancelled until a receive has matched it.
	Sync bool
	// Peer is the other rank, in the world.
	Peer int
	Buf  []byte
	// Piece is not 0 if the payload is forwarded, in pieces of at least Piece bytes.
	Piece int
	// Request is for the engine's use while the message is in flight.
	Request any

	x    *Execution
	step int
	// id increases in the order in which messages begin.
	id uint64
	// sibling is the other message of a forward, until one of the two ends. later means that sibling begins when this
	// message is done.
	sibling *Message
	later   bool
}

// Executor has the collective calls of a rank.
type Executor struct {
	engine Engine
	cfg    Config
	// calls lists the calls in progress, except the calls by which members agree.
	calls []*Execution
	// lastID is the id of the newest message. spare holds messages for reuse.
	lastID uint64
	spare  []*Message
	// woken lists the calls with a completed message or job. ready lists the orderings that all members have received.
	// aborts lists the aborts received from other ranks.
	woken  []*Execution
	ready  []*Ordering
	aborts []abortMsg
	// ranks is indexed by rank of the world.
	ranks []rankStatus
	// epoch distinguishes the communicators whose first member is this rank from earlier communicators with the
	// same numbers. It is 0 until there is such a communicator.
	epoch          uint64
	agreements     map[uint32]*agreement // by communicator
	localAgreement *agreement            // for calls without an agreement
	byOrder        byOrder
	disagreements  uint64
	builtIn        *choice.Table // another version's table, in a test
	counts         map[*coll.Algorithm]*CallCount
	// slots holds the user of each slot of this rank's shared buffer; slotsInUse has a bit for each slot in use.
	// slotOffer is the agreement whose members are choosing one of the free slots.
	slots      [64]*sharing
	slotsInUse uint64
	slotOffer  *agreement
	// toBegin lists the users of slots whose next call may begin.
	toBegin []*sharing
	// recentCalls is a ring of the calls that ended last. endedCount counts all ended calls.
	recentCalls [maxRecentCalls]endedCall
	endedCount  uint64
}

// rankStatus holds the last status that another rank has reported to this rank, and the last status that this rank
// has reported to it.
type rankStatus struct{ status, reported coll.Status }

// New returns the Executor of a rank of a world of the given size.
func New(engine Engine, size int, cfg Config) *Executor {
	return &Executor{
		engine: engine, cfg: cfg, ranks: make([]rankStatus, size),
		agreements: map[uint32]*agreement{}, counts: map[*coll.Algorithm]*CallCount{},
	}
}

// Pending reports whether Advance has something to do.
func (e *Executor) Pending() bool {
	return len(e.woken) > 0 || len(e.ready) > 0 || len(e.toBegin) > 0 || len(e.aborts) > 0
}

// Advance begins everything that can begin. The engine calls it at the end of an event, after reporting all ended
// messages, until nothing is pending.
func (e *Executor) Advance() {
	switch {
	case len(e.ready) > 0:
		last := len(e.ready) - 1
		o := e.ready[last]
		e.ready = e.ready[:last]
		e.beginQueued(o)
	case len(e.toBegin) > 0:
		last := len(e.toBegin) - 1
		s := e.toBegin[last]
		e.toBegin = e.toBegin[:last]
		s.beginNext()
	case len(e.woken) > 0:
		for i := 0; i < len(e.woken); i++ {
			x := e.woken[i]
			e.woken[i] = nil
			x.woken = false
			x.advance()
		}
		e.woken = e.woken[:0]
	case len(e.aborts) > 0: // last, so that calls that can still complete do so first
		f := e.aborts[0]
		e.aborts = append(e.aborts[:0], e.aborts[1:]...)
		e.onAbort(&f)
	}
}

// Free records that no further call will be made in a communicator. Calls in progress continue.
func (e *Executor) Free(comm uint32) {
	a := e.agreements[comm]
	switch {
	case a == nil:
	case !a.done:
		a.freed = true // freed when the members have agreed
	default:
		delete(e.agreements, comm)
		if a.sharing != nil {
			a.sharing.markFreed()
		}
	}
}

// Reset drops the agreements of communicators, and the aborts of calls that were not made here. Calls that wait for
// an agreement remain.
func (e *Executor) Reset() {
	for comm, a := range e.agreements {
		if len(a.waiting) > 0 {
			continue
		}
		delete(e.agreements, comm)
		e.releaseSlot(a)
		if x := a.call; x != nil {
			a.call, x.onEnd = nil, nil
			x.cancelAll()
			x.end(nil) // this is not a program's call
		}
	}
	for _, s := range e.slots {
		if s != nil && s.freed {
			e.release(s)
		}
	}
	e.byOrder = byOrder{}
	e.epoch = 0 // the next program's communicators get a new epoch
}
