package mpe

import (
	"errors"
	"fmt"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// A collective call is carried out by the engine: the host program posts it and may do
// something else. Its steps are requests as others are. When one of them ends, it is
// put into Engine.ended, and flush, at the end of every event, has the call begin what
// can begin then. So no step begins in the middle of an event.

// collectiveOp is a collective call under way.
type collectiveOp struct {
	Collective
	e *core
	// r is what the caller waits for; nil for a call of the engine's own, which then
	// has what is to be done in the end.
	r         *Request
	then      func(err error)
	algorithm *coll.Algorithm
	schedule  coll.Schedule
	progress  coll.Progress
	scratch   []byte
	// wasted is where messages without content end.
	wasted [protocol.WordLen]byte
	// reduce is the operation, unless it is the user's.
	reduce op.Func
	limits WireLimits
	// begun: the members have agreed, and there is a schedule.
	begun bool
	// order is what a broadcast's chain goes by, and position the broadcast's number in it;
	// nil if it is fixed.
	order    *ordering
	position uint32
	// under are the requests under way.
	under []*Request
	// local are steps that can begin and have no message.
	local []localStep
	// computing counts user's functions under way, each in a goroutine.
	computing int
	failed    error
	// agreed is what the members have agreed on, nil for a call that goes without. cause is
	// why the caller has abandoned the call. aborted: another rank's abort has ended it.
	agreed  *agreement
	cause   FailureCause
	aborted bool
	// waking: it is in Engine.woken.
	waking, over bool
}

// localStep is a step with its number.
type localStep struct {
	coll.Step
	number int
}

// free gives the memory of a call that is over back. Its scratch stays with it: to have
// a long one made for every call, and collected, takes longer than the call.
func (x *collectiveOp) free() {
	*x = collectiveOp{schedule: x.schedule, progress: x.progress, under: x.under[:0], local: x.local[:0], scratch: x.scratch[:0]}
	collectiveOpPool.Put(x)
}

// reserve has scratch of n bytes, with whatever content.
func (x *collectiveOp) reserve(n int) {
	if cap(x.scratch) < n {
		x.scratch = make([]byte, n)
	}
	x.scratch = x.scratch[:n]
}

// callRequest makes the request of a call that is prepared.
func (x *collectiveOp) callRequest() *Request {
	r := newRequest()
	*r = Request{kind: opCollective, peer: AnySource, comm: x.Comm, tag: int32(x.Tag), call: x}
	r.status.Peer = AnySource
	x.r = r
	return r
}

// startCall starts a call that is prepared.
func (e *core) startCall(x *collectiveOp) error {
	if e.state != running {
		x.free()
		return fmt.Errorf("rank %d: %w", e.rank, ErrClosed)
	}
	r := x.r
	e.nextID++
	r.id, r.posted = e.nextID, e.at
	e.collectiveOps = append(e.collectiveOps, x)
	if err := e.startCollective(x); err != nil {
		x.r = nil
		x.end(err)
		r.Free()
		return err
	}
	e.flush()
	return nil
}

// prepare does what is no event: it uses only what does not change.
func (e *core) prepare(c *Collective) (x *collectiveOp, err error) {
	x = newCollectiveOp()
	x.Collective, x.e = *c, e
	if x.limits, err = x.Check(x.e); err == nil && x.Reduces() && x.User == nil {
		x.reduce, err = op.Lookup(x.Op, x.Type)
	}
	if err != nil {
		x.free()
		return nil, err
	}
	return x, nil
}

// Wire implements Caller.
func (e *core) Wire(rank int) Wire {
	p := e.peers[rank]
	if p == nil { // this rank
		return Wire{}
	}
	w := p.limits.Wire()
	w.Profile = p.profile().String()
	return w
}

// begin makes the schedule, with what the members have agreed on.
func (x *collectiveOp) begin(agreed *agreement) error {
	a, err := x.choose(agreed)
	if err != nil {
		return err
	}
	x.algorithm, x.agreed = a, agreed
	if err := x.CheckMessages(x.e, x.limits, a, &x.schedule); err != nil {
		return err
	}
	if x.ordered(agreed); x.order != nil && !x.inTurn() {
		return nil
	}
	return x.carryOut()
}

// carryOut makes the schedule and begins.
func (x *collectiveOp) carryOut() error {
	if f := x.pendingAbort(); f != nil {
		x.count()
		x.endAborted(f)
		return nil
	}
	if x.order != nil {
		x.setOrder()
	}
	if err := x.algorithm.Make(&x.schedule, &x.Call); err != nil {
		if x.order != nil {
			x.order.busy = false
		}
		return err
	}
	x.reserve(x.schedule.Scratch)
	x.progress.Begin(&x.schedule, 0)
	x.begun = true
	x.count()
	x.advance()
	return nil
}

// count counts a call that begins.
func (x *collectiveOp) count() {
	n := x.e.counted(x)
	n.Calls++
	n.Bytes += uint64(x.Call.Bytes)
}

// choose gives the algorithm. All ranks come to the same.
func (x *collectiveOp) choose(agreed *agreement) (*coll.Algorithm, error) {
	c := &x.Call
	switch {
	case x.limits.ByOrder:
		return x.chooseUpstream()
	case x.Algorithm != "":
		return coll.Find(c.Collective, x.Algorithm)
	}
	cfg := &x.e.cfg.Collectives
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
func (x *collectiveOp) ordered(agreed *agreement) {
	c := &x.Call
	if c.Collective != coll.Bcast || !x.algorithm.Segmented || c.Order != nil || !c.Flows || c.Ranks < 3 || c.Bytes == 0 {
		return
	}
	if c.Form == coll.OrderFixed && agreed.same {
		c.Form = x.e.cfg.Collectives.Order
	}
	if c.Form != coll.OrderFixed {
		x.order = agreed.ordering(x.Members[c.Root])
		x.order.posted++
		x.position = x.order.posted
	}
}

// chooseUpstream goes by what ranks that upstream's compiler has made do.
func (x *collectiveOp) chooseUpstream() (*coll.Algorithm, error) {
	c := &x.Call
	cfg := &x.e.cfg.Collectives
	if cfg.Tree || x.Algorithm == "tree" {
		c.FPGAs = x.membersOf(cfg.FPGAs)
	}
	if x.Algorithm != "" {
		return coll.Find(c.Collective, x.Algorithm)
	}
	// With two FPGAs and more that were built with the tree, nothing else will do: they
	// would wait for it. A call that it does not fit is refused.
	if len(c.FPGAs) > 1 && coll.Has(c.Collective, "tree") {
		return coll.Find(c.Collective, "tree")
	}
	return coll.ByOrder(c)
}

// membersOf gives the members that are in a list of ranks of the world, in its order.
func (x *collectiveOp) membersOf(list []int) (members []int) {
	for _, rank := range list {
		for i, m := range x.Members {
			if m == rank {
				members = append(members, i)
			}
		}
	}
	return members
}

func (x *collectiveOp) refuse(format string, args ...any) error {
	name := x.Algorithm
	if x.algorithm != nil {
		name = x.algorithm.Name
	}
	return &coll.CallError{Collective: x.Call.Collective, Algorithm: name, Problem: fmt.Sprintf(format, args...)}
}

// errNoFlows is a step that cannot be, as the peer does not speak the extended profile.
var errNoFlows = errors.New("the peer's profile does not let a message be sent on while it comes in")
