package mpi

import (
	"context"
	"fmt"
	"sync"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// collectiveCall describes a collective call. Later calls reuse its memory.
type collectiveCall struct {
	call  call
	devOp collective.Operation
	elem  element
	// err is the first error found.
	err error
	// ints is memory for layouts.
	ints []int
	// sentCopies and recvCopies hold packed copies of typed buffers.
	sentCopies, recvCopies packedCopies
}

// callSequence numbers the collective calls in a communicator, and prevents concurrent calls where they could be
// confused.
type callSequence struct {
	mu sync.Mutex
	// lastNumber is the number of the latest call, from 1 to tagAgree−1; the next number after that is 1 again. Devices
	// use 0 for their own messages. If leased is not nil, the number is there instead, so that C code can count its calls.
	lastNumber uint32
	leased     *uint32
	// matchByOrder is set if messages of some members match by their order alone. Only one call may then be in
	// progress; inProgress is its name, or "" if no call is.
	matchByOrder bool
	inProgress   string
}

// next counts a call and returns its number.
func (s *callSequence) next() int {
	number := &s.lastNumber
	if s.leased != nil {
		number = s.leased
	}
	*number = *number%(tagAgree-1) + 1
	return int(*number)
}

// newCollective begins the description of a call on elements of type e. Errors in the description are recorded and
// reported by post.
func (c *Comm) newCollective(name string, kind coll.Collective, e element, opts []Option) *collectiveCall {
	k := c.newCall(name)
	if err := k.checkIntra(); err != nil {
		// If the communicator is invalid, the description has one rank, so that other methods can use it until post
		// returns the error.
		x := &collectiveCall{call: k, elem: e, err: err}
		x.devOp.Call.Ranks = 1
		return x
	}
	x, _ := c.proc.collectives.Get().(*collectiveCall)
	if x == nil {
		x = new(collectiveCall)
	}
	x.call.set(c, name, 0, Undefined, Undefined) // assign, because k would be copied
	x.elem = e
	d := &x.devOp
	d.Call.Collective, d.Call.Rank, d.Call.Ranks, d.Call.Elem = kind, c.rank, len(c.members), e.size
	d.Members, d.Comm = c.group.ranks, c.number|internalFlag
	d.Datatype, d.AnyDatatype = e.datatype, e.anyDatatype
	x.applyOptions(opts)
	return x
}

// recordError records an error in the description of the call. Only the first one is reported.
func (x *collectiveCall) recordError(class Class, format string, args ...any) {
	if x.err == nil {
		x.err = x.call.error(class, fmt.Errorf(format, args...))
	}
}

// setRoot sets the root and reports whether the caller is the root.
func (x *collectiveCall) setRoot(root int) bool {
	c := &x.devOp.Call
	if root < 0 || root >= c.Ranks {
		x.recordError(ErrRoot, "there is no rank %s: %v has ranks 0 to %d", rankText(root), x.call.comm, c.Ranks-1)
	}
	c.Root = root
	return root == c.Rank
}

// elementCount returns the number of elements in a buffer.
func (x *collectiveCall) elementCount(buf []byte) int { return len(buf) / x.elem.size }

// post hands the call to the device. Even a failed call consumes a number, because other members may have posted the
// call.
func (x *collectiveCall) post() (mpe.Op, error) {
	comm := x.call.comm
	if x.devOp.Members == nil {
		return nil, x.err // without a communicator, the call has no number
	}
	sequence := &comm.callSequence
	sequence.mu.Lock()
	defer sequence.mu.Unlock()
	if sequence.inProgress != "" && x.err == nil {
		return nil, x.call.failf(ErrPending, "%s is in progress, and messages of %s match by their order alone, so "+
			"that two calls would be mixed up: wait for it first",
			sequence.inProgress, comm.describeRanks(comm.worldOnly(comm.group.ranks)))
	}
	x.devOp.Tag = sequence.next()
	if x.err != nil {
		x.notifyOthers(ClassOf(x.err))
		return nil, x.err
	}
	op, err := comm.proc.dev.StartCollective(&x.devOp)
	if err != nil {
		x.notifyOthers(deviceErrorClass(err))
		return nil, x.call.fail(err)
	}
	if sequence.matchByOrder {
		sequence.inProgress = x.call.op
	}
	return op, nil
}

// notifyOthers makes the call fail on the other members, which would otherwise wait for this rank.
func (x *collectiveCall) notifyOthers(why Class) {
	x.call.comm.proc.dev.RefuseCollective(&x.devOp, failureCause(why))
}

// rejectCollective implements Foreign.RefuseCollective.
func (c *Comm) rejectCollective(of coll.Collective, class Class) {
	x := c.newCollective("", of, element{size: 1}, nil)
	x.recordError(class, "")
	_, _ = x.post() // the caller already knows the error
}

// wait executes the call.
func (x *collectiveCall) wait(ctx context.Context) error {
	op, err := x.post()
	if err != nil {
		return err
	}
	var st Status
	if err = x.call.wait(ctx, op, &st); err == nil {
		x.unpackReceived()
	}
	x.recycle()
	return err
}

// start begins the call and returns its request.
func (x *collectiveCall) start() (Request, error) {
	op, err := x.post()
	if err != nil {
		return Request{}, err
	}
	r := x.call.newRequest(op, false)
	r.core.collective = x
	return r, nil
}

// recycle makes the call's memory available to later calls. The device must have finished using it.
func (x *collectiveCall) recycle() {
	comm := x.call.comm
	if t := &comm.callSequence; t.matchByOrder {
		t.mu.Lock()
		t.inProgress = ""
		t.mu.Unlock()
	}
	ints, sent, received := x.ints[:0], x.sentCopies.emptied(), x.recvCopies.emptied()
	*x = collectiveCall{} // a literal with values would be built elsewhere and copied
	x.ints, x.sentCopies, x.recvCopies = ints, sent, received
	comm.proc.collectives.Put(x)
}

// preparedCall is a fully described collective call on an intracommunicator or an intercommunicator.
type preparedCall interface {
	wait(ctx context.Context) error
	start() (Request, error)
}
