package collective

import (
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Execution is a collective call under way. One that is over may be used for another call.
type Execution struct {
	execution
	// Request is what the caller waits for, for the engine's use. It is nil for a call by
	// which members agree, which then has what is to be done in the end.
	Request any

	// The rest is memory that the next call uses: to make it for every call, and collect it,
	// takes longer than the call.
	schedule coll.Schedule
	progress coll.Progress
	scratch  []byte
	// ownShare is what share points to.
	ownShare share
	// under are the messages under way.
	under []*Message
	// local are steps that can begin and have no message.
	local []localStep
}

// execution is what an Execution has of the call at hand.
type execution struct {
	Operation
	e         *Executor
	then      func(err error)
	posted    handshake.Instant
	algorithm *coll.Algorithm
	// wasted is where messages without content end.
	wasted [protocol.WordLen]byte
	// reduce is the operation, unless it is the user's.
	reduce op.Func
	limits WireLimits
	// begun: the members have agreed, and there is a schedule.
	begun bool
	// order is what a broadcast's chain goes by, and position the broadcast's number in it;
	// nil if it is fixed.
	order    *Ordering
	position uint32
	// computing counts user's functions under way, each in a goroutine.
	computing int
	failed    error
	// agreed is what the members have agreed on, nil for a call that goes without. cause is
	// why the caller has abandoned the call. aborted: another rank's abort has ended it.
	agreed  *agreement
	cause   FailureCause
	aborted bool
	// woken: it is in Executor.woken.
	woken bool
	// share is set if the call is carried out by shared buffers.
	share *share
}

// localStep is a step with its number.
type localStep struct {
	coll.Step
	number int
}

// execute begins the schedule, with scratch of whatever content.
func (x *Execution) execute() {
	if n := x.schedule.Scratch; cap(x.scratch) < n {
		x.scratch = make([]byte, n)
	} else {
		x.scratch = x.scratch[:n]
	}
	if x.begun = true; !x.schedule.InOrder {
		x.progress.Begin(&x.schedule)
	}
	x.advance()
}

// Prepare makes x a call. It needs no event. The error is that of Check.
func (x *Execution) Prepare(c *Operation, rank Caller) (err error) {
	x.Operation = *c
	if x.limits, err = x.Check(rank); err == nil && x.Reduces() && x.User == nil {
		x.reduce, err = op.Lookup(x.Op, x.Type)
	}
	return err
}

// Start begins a call that was prepared. Its end is reported by Engine.Finish, perhaps before
// Start returns. If it cannot be, nothing was sent: the error is a *coll.CallError or matches
// handshake.ErrLength.
func (e *Executor) Start(x *Execution, request any) error {
	x.e, x.Request, x.posted = e, request, e.engine.Now()
	e.calls = append(e.calls, x)
	err := e.agreeAndBegin(x)
	if err != nil {
		x.Request = nil
		x.end(err)
	}
	return err
}

// begin makes the schedule, with what the members have agreed on.
func (x *Execution) begin(agreed *agreement) error {
	if agreed.sharing == nil {
		x.Call.Shared = 0
	}
	a, err := x.choose(agreed)
	if err != nil {
		return err
	}
	x.algorithm, x.Algorithm, x.agreed = a, a.Name, agreed
	if err := a.Accepts(&x.Call); err != nil {
		return err
	}
	if err := x.CheckMessages(x.e.engine, x.limits, a, &x.schedule); err != nil {
		return err
	}
	if a.Shares {
		x.enqueue(agreed.sharing)
		return nil
	}
	if x.ordered(agreed); x.order == nil || x.inTurn() {
		x.carryOut()
	}
	return nil
}

// carryOut makes the schedule and begins. The algorithm accepts the call.
func (x *Execution) carryOut() {
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

// count counts a call that begins.
func (x *Execution) count() {
	n := x.e.counted(x)
	n.Calls++
	n.Bytes += uint64(x.Call.Bytes)
}

// choose gives the algorithm. All ranks come to the same.
func (x *Execution) choose(agreed *agreement) (*coll.Algorithm, error) {
	c := &x.Call
	switch {
	case x.limits.ByOrder:
		return x.chooseUpstream()
	case x.Algorithm != "":
		return coll.Find(c.Collective, x.Algorithm)
	}
	cfg := &x.e.cfg
	by, forced := choice.Choice{}, false
	if agreed.same {
		by, forced = cfg.Force.Choose(c)
	}
	if !forced {
		by = agreed.table.Choose(agreed.class, c)
	}
	if c.Segment == 0 {
		c.Segment = by.Segment
	}
	return coll.Find(c.Collective, by.Algorithm)
}

// ordered has the order of a broadcast's chain go by status, if that is what the caller
// wants, or all members are configured to.
func (x *Execution) ordered(agreed *agreement) {
	c := &x.Call
	if c.Collective != coll.Bcast || !x.algorithm.Segmented || c.Order != nil || !c.Flows || c.Ranks < 3 || c.Bytes == 0 {
		return
	}
	if c.Form == coll.OrderFixed && agreed.same {
		c.Form = x.e.cfg.Order
	}
	if c.Form != coll.OrderFixed {
		x.order = agreed.ordering(x.Members[c.Root])
		x.order.posted++
		x.position = x.order.posted
	}
}

// chooseUpstream goes by what ranks that upstream's compiler has made do.
func (x *Execution) chooseUpstream() (*coll.Algorithm, error) {
	c := &x.Call
	cfg := &x.e.cfg
	if cfg.Tree || x.Algorithm == "tree" {
		c.FPGAs = x.membersOf(cfg.FPGAs)
	}
	if x.Algorithm != "" {
		return coll.Find(c.Collective, x.Algorithm)
	}
	// With two FPGAs and more that were built with the tree, nothing else will do: they
	// would wait for it. A call that it does not fit is refused.
	if len(c.FPGAs) > 1 && coll.Named(c.Collective, "tree") != nil {
		return coll.Find(c.Collective, "tree")
	}
	return coll.ByOrder(c)
}

// membersOf gives the members that are in a list of ranks of the world, in its order.
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
