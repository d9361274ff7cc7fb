package collective

import (
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Execution is a collective call in progress. It can be reused for another call after its end.
type Execution struct {
	execution
	// Request is for the engine's use; the caller waits for it. It is nil for a call by which members agree, which uses
	// onEnd instead.
	Request any

	// The remaining fields are memory that the next call reuses. To allocate and collect it for every call would
	// take longer than the call itself.
	schedule coll.Schedule
	progress coll.Progress
	scratch  []byte
	// ownShare is the memory of sharedCall.
	ownShare share
	inFlight []*Message
	// localSteps lists the steps without a message that can begin.
	localSteps []localStep
}

// execution is the part of an Execution that is reset for each call.
type execution struct {
	Operation
	executor  *Executor
	onEnd     func(err error)
	posted    handshake.Instant
	algorithm *coll.Algorithm
	// discardBuf is the receive buffer for messages without content.
	discardBuf [protocol.WordLen]byte
	// reduce is the operation, unless User is set.
	reduce op.Func
	limits WireLimits
	// started means that the members have agreed and that the call has a schedule.
	started bool
	// order determines the order of a broadcast's chain, or is nil if the order is fixed. broadcastNumber is the number
	// of the broadcast in order.
	order           *Ordering
	broadcastNumber uint32
	// computing is the number of calls of the user's function that are running, each in its own goroutine.
	computing int
	failErr   error
	// agreed is the members' agreement, or nil for a call without an agreement. cause is the reason why the caller
	// has abandoned the call. aborted means that another rank has aborted it.
	agreed  *agreement
	cause   FailureCause
	aborted bool
	// woken means that the call is in Executor.woken.
	woken bool
	// sharedCall is not nil if the call uses shared buffers.
	sharedCall *share
}

type localStep struct {
	coll.Step
	number int
}

// execute begins the schedule. The content of scratch is arbitrary.
func (x *Execution) execute() {
	if n := x.schedule.Scratch; cap(x.scratch) < n {
		x.scratch = make([]byte, n)
	} else {
		x.scratch = x.scratch[:n]
	}
	if x.started = true; !x.schedule.InOrder {
		x.progress.Begin(&x.schedule)
	}
	x.advance()
}

// Prepare checks a call and stores it in x. It can be called outside of events. The error is as in Check.
func (x *Execution) Prepare(c *Operation, rank Caller) (err error) {
	x.Operation = *c
	if x.limits, err = x.Check(rank); err == nil && x.Reduces() && x.User == nil {
		x.reduce, err = op.Lookup(x.Op, x.Type)
	}
	return err
}

// Start begins a prepared call. Engine.Finish reports its end, perhaps before Start returns. If Start returns an
// error, nothing was sent; the error is a *coll.CallError or matches handshake.ErrLength.
func (e *Executor) Start(exec *Execution, request any) error {
	exec.executor, exec.Request, exec.posted = e, request, e.engine.Now()
	e.calls = append(e.calls, exec)
	err := e.agreeAndBegin(exec)
	if err != nil {
		exec.Request = nil
		exec.end(err)
	}
	return err
}

// begin chooses the algorithm according to the members' agreement, and begins the call or queues it.
func (x *Execution) begin(agreed *agreement) error {
	if agreed.sharing == nil {
		x.Call.Shared = 0
	}
	algorithm, err := x.choose(agreed)
	if err != nil {
		return err
	}
	x.algorithm, x.Algorithm, x.agreed = algorithm, algorithm.Name, agreed
	if err := algorithm.PrepareCall(&x.Call); err != nil {
		return err
	}
	if err := x.CheckMessages(x.executor.engine, x.limits, algorithm, &x.schedule); err != nil {
		return err
	}
	if algorithm.Shares {
		x.enqueue(agreed.sharing)
		return nil
	}
	if x.setOrdering(agreed); x.order == nil || x.tryBegin() {
		x.run()
	}
	return nil
}

// run makes the schedule and executes it. The algorithm must accept the call.
func (x *Execution) run() {
	if f := x.pendingAbort(); f != nil {
		x.count()
		x.endAborted(f)
		return
	}
	if x.order != nil {
		x.setOrder()
	}
	x.algorithm.Build(&x.schedule, &x.Call)
	x.count()
	x.execute()
}

func (x *Execution) count() {
	n := x.executor.countFor(x)
	n.Calls++
	n.Bytes += uint64(x.Call.Bytes)
}

// choose returns the algorithm. It is the same on all ranks.
func (x *Execution) choose(agreed *agreement) (*coll.Algorithm, error) {
	call := &x.Call
	switch {
	case x.limits.ByOrder:
		return x.chooseUpstream()
	case x.Algorithm != "":
		return coll.Find(call.Collective, x.Algorithm)
	}
	cfg := &x.executor.cfg
	by, forced := choice.Choice{}, false
	if agreed.sameConfig {
		by, forced = cfg.Force.Choose(call)
	}
	if !forced {
		by = agreed.table.Choose(agreed.class, call)
	}
	if call.Segment == 0 {
		call.Segment = by.Segment
	}
	return coll.Find(call.Collective, by.Algorithm)
}

// setOrdering makes the order of a broadcast's chain depend on status, if the caller requests it or if all members are
// configured to do so.
func (x *Execution) setOrdering(agreed *agreement) {
	call := &x.Call
	if call.Collective != coll.Bcast || !x.algorithm.Segmented || call.Order != nil || !call.Flows || call.Ranks < 3 ||
		call.Bytes == 0 {
		return
	}
	if call.OrderForm == coll.OrderFixed && agreed.sameConfig {
		call.OrderForm = x.executor.cfg.Order
	}
	if call.OrderForm != coll.OrderFixed {
		x.order = agreed.ordering(x.Members[call.Root])
		x.order.posted++
		x.broadcastNumber = x.order.posted
	}
}

// chooseUpstream returns the algorithm that ranks built with upstream's compiler use.
func (x *Execution) chooseUpstream() (*coll.Algorithm, error) {
	call := &x.Call
	cfg := &x.executor.cfg
	if cfg.Tree || x.Algorithm == "tree" {
		call.FPGAs = x.membersOf(cfg.FPGAs)
	}
	if x.Algorithm != "" {
		return coll.Find(call.Collective, x.Algorithm)
	}
	// Two or more FPGAs that were built with the tree support no other algorithm: they would wait for its messages.
	// If the tree does not support the call, the call is rejected.
	if len(call.FPGAs) > 1 && coll.Named(call.Collective, "tree") != nil {
		return coll.Find(call.Collective, "tree")
	}
	return coll.ByOrder(call)
}

// membersOf returns the members that are in a list of ranks of the world, in the order of the list.
func (x *Execution) membersOf(list []int) (members []int) {
	for _, rank := range list {
		for i, m := range x.Members {
			if m == rank {
				members = append(members, i)
			}
		}
	}
	return members
}
