package mpi

import (
	"context"
	"fmt"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
)

// round is a collective call that consists of concurrent messages between pairs of ranks: a neighbourhood
// collective, or a collective on an intercommunicator. A request treats it like an operation of the device.
// Unlike the device's collective calls, a round that fails does not notify other ranks.
type round struct {
	x *collectiveCall
	// proc is the process to whose pool Free returns the round. Free cannot get it from x, which may have been recycled
	// by then.
	proc *process
	ops  []mpe.Op
	// expectedLens holds the expected message length of each operation, or −1 for a send.
	expectedLens []int
	// peers holds, for each operation, the rank of its peer in the communicator.
	peers []int
	// doneOps is the number of operations at the beginning of ops whose outcome is known. err is the first error.
	doneOps  int
	err      error
	finished bool
	// reduceBlocks is set if finish must reduce the received blocks into result, beginning at byte skip of each block.
	reduceBlocks bool
	blocks       []byte
	result       []byte
	skip         int
}

// newRound begins the description of a call implemented as a round. The caller adds buffers as for other collective
// calls.
func (c *Comm) newRound(name string, e element, check func(*call) error) (*collectiveCall, *round) {
	k := c.newCall(name)
	if err := check(&k); err != nil {
		x := &collectiveCall{call: k, elem: e, err: err}
		return x, &round{x: x}
	}
	x, _ := c.proc.collectives.Get().(*collectiveCall)
	if x == nil {
		x = new(collectiveCall)
	}
	x.call, x.elem = k, e
	x.devOp.Call.Elem = e.size
	o, _ := c.proc.rounds.Get().(*round)
	if o == nil {
		o = new(round)
	}
	o.x, o.proc = x, c.proc
	return x, o
}

// send starts sending b to a rank of the communicator. It does nothing if peer is ProcNull.
func (o *round) send(peer int, b []byte) { o.add(mpe.OpSend, peer, b) }

// recv starts receiving a message from a rank of the communicator into b. It does nothing if peer is ProcNull.
func (o *round) recv(peer int, b []byte) { o.add(mpe.OpRecv, peer, b) }

func (o *round) add(kind mpe.OpKind, peer int, b []byte) {
	if o.x.err == nil && peer != ProcNull {
		o.addMessage(kind, int(o.x.call.comm.members[peer].worldRank), peer, b)
	}
}

// addMessage starts a message to or from a rank of the world. Errors refer to that rank as peer.
func (o *round) addMessage(kind mpe.OpKind, world, peer int, b []byte) {
	x := o.x
	if x.err != nil {
		return
	}
	c := x.call.comm
	device, err := c.proc.dev.Start(mpe.Operation{
		Kind: kind, Peer: world, Tag: x.devOp.Tag, Comm: c.number | internalFlag, Buf: b,
		Datatype: x.elem.datatype, AnyDatatype: x.elem.anyDatatype,
	})
	if err != nil {
		x.err = x.call.fail(err)
		return
	}
	wanted := -1
	if kind == mpe.OpRecv {
		wanted = len(b)
	}
	o.ops, o.expectedLens, o.peers = append(o.ops, device), append(o.expectedLens, wanted), append(o.peers, peer)
}

// assignTag assigns the tag for the messages of the call. It must be called after all checks. It returns false if a
// check failed.
func (o *round) assignTag() bool {
	x := o.x
	if x.err != nil {
		return false
	}
	x.devOp.Tag = tagRound | int(x.call.comm.roundCount.Add(1)%(tagAgree>>1))
	return true
}

// wait executes the call.
func (o *round) wait(ctx context.Context) error {
	x := o.x
	if err := o.cancelOnError(); err != nil {
		return err
	}
	st, err := o.Await(ctx)
	o.Free()
	if err != nil {
		err = x.call.finishFailed(new(Status), st, err)
	} else {
		x.unpackReceived()
	}
	x.recycle()
	return err
}

// start returns the request of the call.
func (o *round) start() (Request, error) {
	if err := o.cancelOnError(); err != nil {
		return Request{}, err
	}
	r := o.x.call.newRequest(o, false)
	r.core.collective = o.x
	return r, nil
}

// cancelOnError returns the error that was found while the call was described, if any. In this case, it first cancels
// the messages in flight.
func (o *round) cancelOnError() error {
	if o.x.err == nil {
		return nil
	}
	for _, op := range o.ops {
		op.Cancel()
		_, _ = op.Await(context.Background()) // the error of the call is reported instead
		op.Free()
	}
	return o.x.err
}

// noStatus is the status of an operation with several messages.
var noStatus mpe.Status

// Await implements mpe.Op.
func (o *round) Await(ctx context.Context) (*mpe.Status, error) {
	for ; o.doneOps < len(o.ops); o.doneOps++ {
		st, err := o.ops[o.doneOps].Await(ctx)
		o.recordOutcome(st, err)
	}
	return &noStatus, o.finish()
}

// Result implements mpe.Op.
func (o *round) Result() (*mpe.Status, error) { return nil, nil }

// LibraryData implements mpe.Op.
func (o *round) LibraryData() *any { return nil }

// Test implements mpe.Op.
func (o *round) Test() (mpe.Status, bool, error) {
	for ; o.doneOps < len(o.ops); o.doneOps++ {
		st, done, err := o.ops[o.doneOps].Test()
		if !done {
			return mpe.Status{}, false, nil
		}
		o.recordOutcome(&st, err)
	}
	return mpe.Status{}, true, o.finish()
}

// recordOutcome records the outcome of the next operation. After the first failure, it cancels the remaining
// operations.
func (o *round) recordOutcome(st *mpe.Status, err error) {
	if o.err != nil {
		return
	}
	if wanted := o.expectedLens[o.doneOps]; err == nil && wanted >= 0 && st.Bytes != int64(wanted) {
		err = fmt.Errorf("rank %d sent %d bytes where %d belong: not all members made the same call",
			o.peers[o.doneOps], st.Bytes, wanted)
	}
	if o.err = err; err != nil {
		for _, op := range o.ops[o.doneOps+1:] {
			op.Cancel()
		}
	}
}

// finish reduces the received blocks if reduceBlocks is set.
func (o *round) finish() error {
	if o.finished || o.err != nil {
		return o.err
	}
	o.finished = true
	if o.reduceBlocks {
		o.err = o.reduce()
	}
	return o.err
}

// reduce combines the blocks in rank order.
func (o *round) reduce() error {
	operation := &o.x.devOp
	n := len(o.result)
	if n == 0 {
		return nil
	}
	size := len(o.blocks) / len(o.x.call.comm.members)
	f := operation.User
	if f == nil {
		builtin, err := op.Lookup(operation.Op, operation.Type)
		if err != nil {
			return err
		}
		f = func(in, inout []byte) error { builtin(inout, in, inout); return nil }
	}
	last := len(o.blocks) - size
	copy(o.result, o.blocks[last+o.skip:])
	for at := last - size; at >= 0; at -= size {
		if err := f(o.blocks[at+o.skip:][:n], o.result); err != nil {
			return err
		}
	}
	return nil
}

// Cancel implements mpe.Op.
func (o *round) Cancel() {
	for _, op := range o.ops[o.doneOps:] {
		op.Cancel()
	}
}

// Notify implements mpe.Op. c receives a value when any of the operations is done.
func (o *round) Notify(c chan<- struct{}) {
	for _, op := range o.ops[o.doneOps:] {
		op.Notify(c)
	}
	if c != nil && o.doneOps == len(o.ops) {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// Free implements mpe.Op.
func (o *round) Free() {
	for _, op := range o.ops {
		op.Free()
	}
	clear(o.ops)
	p := o.proc
	*o = round{ops: o.ops[:0], expectedLens: o.expectedLens[:0], peers: o.peers[:0], blocks: o.blocks[:0]}
	p.rounds.Put(o)
}
