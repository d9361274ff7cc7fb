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
	// p is the process to whose pool the round returns after x.
	p   *process
	ops []mpe.Op
	// wanted holds the expected message length of each operation, or −1 for a send.
	wanted []int
	// peers holds the peer of each operation, as a rank in the communicator.
	peers []int
	// outcome is the number of operations that are done, counted from the beginning of the list. err is the
	// first error.
	outcome int
	err     error
	over    bool
	// combine is set if the received blocks are to be reduced into into. Only the elements from byte skip on
	// are used.
	combine bool
	blocks  []byte
	into    []byte
	skip    int
}

// pairwise begins the description of a call that is implemented as a round. Its buffers are added in the same
// way as for other collective calls.
func (c *Comm) pairwise(name string, e element, check func(*call) error) (*collectiveCall, *round) {
	k := c.callf(name)
	if err := check(&k); err != nil {
		x := &collectiveCall{call: k, elem: e, err: err}
		return x, &round{x: x}
	}
	x, _ := c.p.collectives.Get().(*collectiveCall)
	if x == nil {
		x = new(collectiveCall)
	}
	x.call, x.elem = k, e
	x.dev.Call.Elem = e.size
	o, _ := c.p.rounds.Get().(*round)
	if o == nil {
		o = new(round)
	}
	o.x, o.p = x, c.p
	return x, o
}

// send adds a message to a rank of the communicator, unless it is ProcNull.
func (o *round) send(peer int, b []byte) { o.add(mpe.OpSend, peer, b) }

// recv adds a message from a rank of the communicator, unless it is ProcNull.
func (o *round) recv(peer int, b []byte) { o.add(mpe.OpRecv, peer, b) }

func (o *round) add(kind mpe.OpKind, peer int, b []byte) {
	if o.x.err == nil && peer != ProcNull {
		o.exchange(kind, int(o.x.call.comm.members[peer].world), peer, b)
	}
}

// exchange adds a message to or from a rank of the world. Errors call that rank peer.
func (o *round) exchange(kind mpe.OpKind, world, peer int, b []byte) {
	x := o.x
	if x.err != nil {
		return
	}
	c := x.call.comm
	device, err := c.p.dev.Start(mpe.Operation{
		Kind: kind, Peer: world, Tag: x.dev.Tag, Comm: c.number | internal, Buf: b,
		Datatype: x.elem.datatype, AnyDatatype: x.elem.any,
	})
	if err != nil {
		x.err = x.call.fail(err)
		return
	}
	wanted := -1
	if kind == mpe.OpRecv {
		wanted = len(b)
	}
	o.ops, o.wanted, o.peers = append(o.ops, device), append(o.wanted, wanted), append(o.peers, peer)
}

// begin sets the tag for the messages of the call. It must be called after all checks. It returns false if one
// of them failed.
func (o *round) begin() bool {
	x := o.x
	if x.err != nil {
		return false
	}
	x.dev.Tag = tagRound | int(x.call.comm.rounds.Add(1)%(tagMake>>1))
	return true
}

// wait executes the call.
func (o *round) wait(ctx context.Context) error {
	x := o.x
	if err := o.refused(); err != nil {
		return err
	}
	st, err := o.Await(ctx)
	o.Free()
	if err != nil {
		err = x.call.ended(new(Status), st, err)
	} else {
		x.place()
	}
	x.over()
	return err
}

// start returns the request of the call.
func (o *round) start() (Request, error) {
	if err := o.refused(); err != nil {
		return Request{}, err
	}
	r := o.x.call.request(o, false)
	r.core.collective = o.x
	return r, nil
}

// refused cancels the messages in flight, and returns the error that was found while the call was described.
func (o *round) refused() error {
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
	for ; o.outcome < len(o.ops); o.outcome++ {
		st, err := o.ops[o.outcome].Await(ctx)
		o.end(st, err)
	}
	return &noStatus, o.finish()
}

// Ended implements mpe.Op.
func (o *round) Ended() (*mpe.Status, error) { return nil, nil }

// Library implements mpe.Op.
func (o *round) Library() *any { return nil }

// Test implements mpe.Op.
func (o *round) Test() (mpe.Status, bool, error) {
	for ; o.outcome < len(o.ops); o.outcome++ {
		st, done, err := o.ops[o.outcome].Test()
		if !done {
			return mpe.Status{}, false, nil
		}
		o.end(&st, err)
	}
	return mpe.Status{}, true, o.finish()
}

// end records the outcome of the next operation. After the first failure, the remaining operations are
// cancelled.
func (o *round) end(st *mpe.Status, err error) {
	if o.err != nil {
		return
	}
	if wanted := o.wanted[o.outcome]; err == nil && wanted >= 0 && st.Bytes != int64(wanted) {
		err = fmt.Errorf("rank %d sent %d bytes where %d belong: not all members made the same call",
			o.peers[o.outcome], st.Bytes, wanted)
	}
	if o.err = err; err != nil {
		for _, op := range o.ops[o.outcome+1:] {
			op.Cancel()
		}
	}
}

// finish reduces the received blocks if combine is set.
func (o *round) finish() error {
	if o.over || o.err != nil {
		return o.err
	}
	o.over = true
	if o.combine {
		o.err = o.reduce()
	}
	return o.err
}

// reduce combines the blocks in rank order.
func (o *round) reduce() error {
	d := &o.x.dev
	n := len(o.into)
	if n == 0 {
		return nil
	}
	size := len(o.blocks) / len(o.x.call.comm.members)
	f := d.User
	if f == nil {
		builtin, err := op.Lookup(d.Op, d.Type)
		if err != nil {
			return err
		}
		f = func(in, inout []byte) error { builtin(inout, in); return nil }
	}
	last := len(o.blocks) - size
	copy(o.into, o.blocks[last+o.skip:])
	for at := last - size; at >= 0; at -= size {
		if err := f(o.blocks[at+o.skip:][:n], o.into); err != nil {
			return err
		}
	}
	return nil
}

// Cancel implements mpe.Op.
func (o *round) Cancel() {
	for _, op := range o.ops[o.outcome:] {
		op.Cancel()
	}
}

// Notify implements mpe.Op. c receives a value when any of the operations is done.
func (o *round) Notify(c chan<- struct{}) {
	for _, op := range o.ops[o.outcome:] {
		op.Notify(c)
	}
	if c != nil && o.outcome == len(o.ops) {
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
	p := o.p
	*o = round{ops: o.ops[:0], wanted: o.wanted[:0], peers: o.peers[:0], blocks: o.blocks[:0]}
	p.rounds.Put(o)
}
