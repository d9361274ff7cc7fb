// Package collective executes collective operations: it has the schedules of a rank's calls
// (package coll) under way, gives their messages to the engine of the rank, and ends the calls.
//
// An Executor has all calls of one rank. It acts in events only: the engine calls it when a
// call is made (Start), when a message or a user's function of a call has ended (Ended,
// Computed), and when a message of another rank's Executor has come (Opened, Arrived). What
// follows from that begins when the engine calls Advance, at the end of the event: no step
// begins in the middle of one. Everything that an Executor needs is in the interface Engine.
// It has no lock, goroutine, clock or randomness; Check and Prepare may be called at any time.
//
// The files, in the order in which a call meets them: operation.go and check.go describe and
// check it; agree.go has the members of its communicator agree how to choose algorithms;
// start.go chooses one, order.go the order of a broadcast's chain, step.go executes the steps,
// shared.go those of schedules that use shared buffers; end.go ends it; abort.go and onabort.go abort it on the other ranks; report.go reports.
package collective

import (
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

// Engine is what an Executor needs of the engine of its rank. All methods are called in an
// event of the engine. None of them calls Advance.
type Engine interface {
	Caller
	// Now returns when the event at hand began.
	Now() handshake.Instant
	// Random returns 64 random bits.
	Random() uint64

	// Start posts a message. Unless it fails, its end is reported by Executor.Ended.
	Start(m *Message) error
	// Forward posts two messages with the same buffer: what arrives in the first is sent on
	// in the second while it arrives, in pieces of recv.Piece bytes at least. If send is so
	// short that it is sent eagerly, later is true and only recv was posted.
	Forward(recv, send *Message) (later bool, err error)
	// Cancel ends a message without a report, if it was posted. Its buffer is not used any
	// more when Cancel returns.
	Cancel(m *Message)
	// WaitError returns the error of a message whose caller's context has ended with cause.
	WaitError(m *Message, cause error) error
	// Answers reports whether anything has ever come from a rank of the world, or a connection to
	// it was made.
	Answers(rank int) bool
	// CauseOf returns what other ranks are to know of an error.
	CauseOf(err error) FailureCause

	// SendInternal sends a message of the Executor's own, if the engine is not closed. Its
	// communicator is one for which Internal is true. Unless o is nil, its end is reported by
	// Executor.Confirmed.
	SendInternal(rank int, comm, tag uint32, payload []byte, o *Ordering)
	// Discard drops the messages with tags 1 to Tags of a communicator that no receive has
	// matched, and those with tag 0, but the newest of each rank.
	Discard(comm uint32)
	// Unsent returns how many bytes of messages there are of which not all was sent, about.
	Unsent() int

	// Shared returns the shared buffers of this rank's host, or nil if it has none.
	Shared() SharedBuffers

	// Compute has a goroutine call j.Run outside the event. Its end is reported by
	// Executor.Computed, in an event of its own.
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
	// Sync: it can be cancelled until a receive has matched it.
	Sync bool
	// Peer is the other rank, of the world.
	Peer int
	Buf  []byte
	// Piece is not 0 if the payload is forwarded, in pieces of so many bytes at least.
	Piece int
	// Request is the engine's, for its use while the message is under way.
	Request any

	x    *Execution
	step int
	// id is greater than those of messages that began before.
	id uint64
	// other is the other half of a forward, until one has ended. later: the other one begins
	// when this one has.
	other *Message
	later bool
}

// Executor has the collective calls of a rank.
type Executor struct {
	engine Engine
	cfg    Config
	// calls are those under way, but for those by which members agree.
	calls []*Execution
	// lastID is that of the message that began last, and spare are messages for reuse.
	lastID uint64
	spare  []*Message
	// woken are calls of which something has ended, ready are orderings that all members
	// have learned of, and aborts are those that other ranks have sent.
	woken  []*Execution
	ready  []*Ordering
	aborts []abortMsg
	// ranks has an element for each rank of the world.
	ranks []statuses
	// epoch distinguishes communicators whose first member is this rank from earlier ones of
	// the same number; 0: there are none.
	epoch         uint64
	agreements    map[uint32]*agreement // of communicators
	alone         *agreement            // for calls that need none
	byOrder       byOrder
	disagreements uint64
	builtIn       *choice.Table // that of another version, in a test
	counts        map[*coll.Algorithm]*Count
	// slots has the use of each slot of this rank's shared buffer; slotsInUse has a bit for
	// each that has one. offered is the agreement whose members choose one of the others.
	slots      [64]*sharing
	slotsInUse uint64
	offered    *agreement
	// toBegin have calls by shared buffers that may begin.
	toBegin []*sharing
	// ended has the calls that ended last; endedCount counts all.
	ended      [maxEnded]endedCall
	endedCount uint64
}

// statuses are what a rank has last reported of what it has to send, and what was reported to it.
type statuses struct{ status, reported coll.Status }

// New returns the Executor of a rank of a world of the given size.
func New(engine Engine, size int, cfg Config) *Executor {
	return &Executor{
		engine: engine, cfg: cfg, ranks: make([]statuses, size),
		agreements: map[uint32]*agreement{}, counts: map[*coll.Algorithm]*Count{},
	}
}

// Pending reports whether Advance has something to do.
func (e *Executor) Pending() bool {
	return len(e.woken) > 0 || len(e.ready) > 0 || len(e.toBegin) > 0 || len(e.aborts) > 0
}

// Advance begins what can begin. The engine calls it at the end of an event, after it has
// reported all messages that have ended, until nothing is pending.
func (e *Executor) Advance() {
	switch {
	case len(e.ready) > 0:
		last := len(e.ready) - 1
		o := e.ready[last]
		e.ready = e.ready[:last]
		e.nextInTurn(o)
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
	case len(e.aborts) > 0: // last: a call that can complete does
		f := e.aborts[0]
		e.aborts = append(e.aborts[:0], e.aborts[1:]...)
		e.onAbort(&f)
	}
}

// Free notes that no further call is made in a communicator. Those under way go on.
func (e *Executor) Free(comm uint32) {
	a := e.agreements[comm]
	switch {
	case a == nil:
	case !a.done:
		a.freed = true // when the members have agreed
	default:
		delete(e.agreements, comm)
		if a.sharing != nil {
			a.sharing.free()
		}
	}
}

// Reset drops what the members of communicators have agreed on, and the aborts of calls that
// were not made here. Calls that wait until their members have agreed are not changed.
func (e *Executor) Reset() {
	for comm, a := range e.agreements {
		if len(a.waiting) > 0 {
			continue
		}
		delete(e.agreements, comm)
		e.leaveSlot(a)
		if x := a.call; x != nil {
			a.call, x.then = nil, nil
			x.cancelAll()
			x.end(nil) // no program has made it
		}
	}
	for _, s := range e.slots {
		if s != nil && s.freed {
			e.release(s)
		}
	}
	e.byOrder = byOrder{}
	e.epoch = 0 // the next program's communicators get another one
}
