// Package collective executes collective operations: it runs the schedules of a rank's calls (package coll), hands
// their messages to the rank's engine, and ends the calls.
//
// An Executor manages all collective calls of one rank. It acts only in events: the engine calls it when a call is made
// (Start), when a message or a user function ends (MessageDone, JobDone), and when a message of another rank's Executor
// arrives (InternalOpened, InternalArrived). At the end of the event, the engine calls Advance, which begins the steps
// that have become possible. No step begins earlier in an event. An Executor accesses its surroundings only through the
// interface Engine, and uses no lock, goroutine, clock or randomness. Check and Prepare may be called at any time.
//
// The files, in the order in which a call passes through them: operation.go and check.go describe and check the call;
// agree.go makes the members of the communicator agree how to choose algorithms; start.go chooses one; order.go
// determines the order of a broadcast's chain; step.go executes steps, and shared.go the steps of schedules on shared
// buffers; end.go ends the call; abort.go and onabort.go abort it on other ranks; report.go reports calls.
package collective

import (
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

// Engine is the engine of the rank to which an Executor belongs. The Executor calls its methods only within events of
// the engine. They must not call Advance.
type Engine interface {
	Caller
	// Now returns the start time of the current event.
	Now() handshake.Instant
	// Random returns 64 random bits.
	Random() uint64

	// Start posts a message. If it succeeds, the engine calls Executor.MessageDone when the message completes or fails.
	Start(m *Message) error
	// Forward posts a receive and a send with the same buffer. The send forwards the data while it is still being
	// received, in pieces of at least recv.Piece bytes. If the send is short enough to be sent eagerly, Forward posts
	// only the receive, and returns later = true.
	Forward(recv, send *Message) (later bool, err error)
	// Cancel ends a message if it was posted, without calling MessageDone. Afterwards the engine no longer uses the
	// message's buffer.
	Cancel(m *Message)
	// WaitError returns the error of a message that is still in flight when its caller's context is done with the given
	// cause.
	WaitError(m *Message, cause error) error
	// HasAnswered reports whether this rank has ever received a packet from the given world rank, or has connected to
	// it.
	HasAnswered(rank int) bool
	// CauseOf returns the cause that describes an error to other ranks.
	CauseOf(err error) FailureCause

	// SendInternal sends a message to another rank's Executor, unless the engine is closed. The communicator must be
	// one for which Internal returns true. If o is not nil, the engine calls Executor.OrderConfirmed when the message
	// is acknowledged or fails.
	SendInternal(rank int, comm, tag uint32, payload []byte, o *Ordering)
	// DiscardStale drops unexpected messages of a communicator: all messages with tags 1 to Tags, and all messages with
	// tag 0 except the newest from each rank.
	DiscardStale(comm uint32)
	// UnsentBytes returns the total number of bytes in messages that have not been sent completely.
	UnsentBytes() int

	// Shared returns the shared buffers of the ranks on this host, or nil.
	Shared() SharedBuffers

	// Compute runs j.Run in a goroutine, outside of the current event. When Run returns, the engine calls
	// Executor.JobDone in a separate event.
	Compute(j Job)
	// Finish informs the engine that a call has ended. From then on, the engine may reuse x.
	Finish(x *Execution, err error)
}

// Message is a send or a receive that belongs to a step of a call.
type Message struct {
	// Call specifies the communicator and the datatype.
	Call *Operation
	Tag  int
	Send bool
	// Sync makes the send synchronous, so that it can be cancelled until a receive has matched it.
	Sync bool
	// Peer is the world rank of the other rank.
	Peer int
	Buf  []byte
	// Piece is the minimum length of the pieces in which the payload is forwarded while it is being received, or 0 if
	// it is not forwarded.
	Piece int
	// Request is for the engine's use while the message is in flight.
	Request any

	x    *Execution
	step int
	// id numbers the messages in the order of their creation.
	id uint64
	// sibling is the other of the two messages of a forward, or nil once either has ended. later means that sibling is
	// sent only after this message completes.
	sibling *Message
	later   bool
}

// Executor manages the collective calls that one rank makes.
type Executor struct {
	engine Engine
	cfg    Config
	// calls lists the calls in progress or queued, except those by which the members of a communicator agree.
	calls []*Execution
	// lastID is the id of the message created last. spare holds messages for reuse.
	lastID uint64
	spare  []*Message
	// woken lists the calls of which a message or job has completed. ready lists the orderings whose announcement has
	// reached all members. aborts lists received aborts that have yet to be processed.
	woken  []*Execution
	ready  []*Ordering
	aborts []abortMsg
	// ranks holds the status information about each rank, indexed by world rank.
	ranks []rankStatus
	// epoch distinguishes the communicators whose first member is this rank from earlier communicators with the same
	// numbers. It is 0 before the first such communicator.
	epoch          uint64
	agreements     map[uint32]*agreement // by communicator
	localAgreement *agreement            // for calls without an agreement
	byOrder        byOrder
	disagreements  uint64
	builtIn        *choice.Table // another version's table, in a test
	counts         map[*coll.Algorithm]*CallCount
	// slots holds the user of each slot of this rank's shared buffer, and slotsInUse a bit for each slot in use.
	// slotOffer is the agreement whose members are choosing one of the free slots, or nil.
	slots      [64]*sharing
	slotsInUse uint64
	slotOffer  *agreement
	// toBegin lists those users of slots whose next queued call may begin.
	toBegin []*sharing
	// recentCalls is a ring buffer of the calls that ended last. endedCount counts all ended calls.
	recentCalls [maxRecentCalls]endedCall
	endedCount  uint64
	// replayed is memory for Replay.
	replayed Execution
}

// rankStatus holds the last status that another rank reported to this rank, and the last status that this rank reported
// in return.
type rankStatus struct{ status, reported coll.Status }

// New returns the Executor for a rank in a world of the given size.
func New(engine Engine, size int, cfg Config) *Executor {
	return &Executor{
		engine: engine, cfg: cfg, ranks: make([]rankStatus, size),
		agreements: map[uint32]*agreement{}, counts: map[*coll.Algorithm]*CallCount{},
	}
}

// Pending reports whether Advance has any work to do.
func (e *Executor) Pending() bool {
	return len(e.woken) > 0 || len(e.ready) > 0 || len(e.toBegin) > 0 || len(e.aborts) > 0
}

// Advance performs pending work of one kind. At the end of an event, after reporting all completed messages, the engine
// calls it until Pending returns false.
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
	case len(e.aborts) > 0: // last, so that calls that can still complete are completed first
		f := e.aborts[0]
		e.aborts = append(e.aborts[:0], e.aborts[1:]...)
		e.onAbort(&f)
	}
}

// Free releases the state of a communicator in which the program will make no further call. Calls in progress continue.
func (e *Executor) Free(comm uint32) {
	a := e.agreements[comm]
	switch {
	case a == nil:
	case !a.done:
		a.freed = true // onAgreed frees it
	default:
		delete(e.agreements, comm)
		if a.sharing != nil {
			a.sharing.markFreed()
		}
	}
}

// Reset drops all agreements except those that calls are waiting for. It also drops the aborts of calls that this rank
// has not made.
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
			x.end(nil) // no program waits for this call
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
