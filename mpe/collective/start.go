package collective

import (
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Execution is a collective call in progress. Its memory can be reused for another call after the end of the call.
type Execution struct {
	execution
	// Request is the engine's request, for which the caller waits. It is nil for a call by which members agree, which
	// sets onEnd instead.
	Request any

	// The remaining fields hold memory that the next call reuses. Allocating and garbage-collecting this memory for
	// every call would take longer than the call itself.
	schedule coll.Schedule
	progress coll.Progress
	scratch  []byte
	// ownShare is the memory of sharedCall.
	ownShare share
	inFlight []*Message
	// localSteps lists the steps that can begin and involve no messages.
	localSteps []localStep
}

// execution contains those fields of an Execution that are reset for each call.
type execution struct {
	Operation
	executor  *Executor
	onEnd     func(err error)
	posted    handshake.Instant
	algorithm *coll.Algorithm
	// discardBuf is the receive buffer for tokens, whose content does not matter.
	discardBuf [protocol.WordLen]byte
	// reduce is the function that implements the operation Op for elements of Type; nil if User is set.
	reduce op.Func
	limits WireLimits
	// started means that the members have agreed, and that the call's schedule has been built.
	started bool
	// order determines the order of a broadcast's chain; nil if the order is fixed. broadcastNumber is this broadcast's
	// number among all broadcasts that share order.
	order           *Ordering
	broadcastNumber uint32
	// computing is the number of running calls of the user function, each in a separate goroutine.
	computing int
	failErr   error
	// agreed is the agreement of the members according to which the call is executed, or nil before the call begins.
	// cause is the reason why the caller abandoned the call. aborted means that another rank aborted the call.
	agreed  *agreement
	cause   FailureCause
	aborted bool
	// woken means that the call is listed in Executor.woken.
	woken bool
	// sharedCall is the call's state if it uses shared buffers, and nil otherwise.
	sharedCall *share
}

// localStep is a step without messages, with its number in the schedule.
type localStep struct {
	coll.Step
	number int
}

// execute begins the execution of the schedule. The initial content of scratch is undefined.
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

// Prepare checks a call and stores it in x. It may be called inside or outside of events. The error is as in Check.
func (x *Execution) Prepare(c *Operation, rank Caller) (err error) {
	x.Operation = *c
	if x.limits, err = x.Check(rank); err == nil && x.Reduces() && x.User == nil {
		x.reduce, err = op.Lookup(x.Op, x.Type)
	}
	return err
}

// Start begins a prepared call. It calls Engine.Finish at the end of the call, perhaps before Start returns. If Start
// returns an error, nothing was sent; the error is a *coll.CallError or matches handshake.ErrLength.
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

// begin chooses the algorithm according to the members' agreement, and then begins or queues the call.
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

// run builds the schedule and executes it, unless a stored abort ends the call. The algorithm must support the call.
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

// choose returns the algorithm for the call. All ranks choose the same one.
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

// setOrdering makes the order of a broadcast's chain depend on the ranks' status, if the caller or the configuration of
// all members requests it.
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

// chooseUpstream returns the algorithm for a call with deployed nodes, which upstream's compiler has fixed.
func (x *Execution) chooseUpstream() (*coll.Algorithm, error) {
	call := &x.Call
	cfg := &x.executor.cfg
	if cfg.Tree || x.Algorithm == "tree" {
		call.FPGAs = x.membersOf(cfg.FPGAs)
	}
	if x.Algorithm != "" {
		return coll.Find(call.Collective, x.Algorithm)
	}
	// Two or more FPGAs built with the tree support no other algorithm: they wait for the messages of the tree. If the
	// tree does not support the call, PrepareCall rejects the call.
	if len(call.FPGAs) > 1 && coll.Named(call.Collective, "tree") != nil {
		return coll.Find(call.Collective, "tree")
	}
	return coll.ByOrder(call)
}

// membersOf returns those members whose world ranks are in list, in the order of list.
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
