package mpi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Idup starts Dup and returns (MPI_Comm_idup, section 7.4.2). The new communicator must not be used before the request has ended:
// until then, and if it fails, calls with it are ErrComm. Attributes are copied at once. The call counts among the
// collective calls on c.
func (c *Comm) Idup() (*Comm, Request, error) {
	const op = "Idup"
	k := c.callf(op)
	if err := k.checkIntra(); err != nil {
		return nil, Request{}, err
	}
	a := c.agreement(k, c.group.ranks, 0)
	if err := a.check(); err != nil {
		return nil, Request{}, err
	}
	twin, err := c.duplicate(op, c.p.comm(noNumber, c.group, ""))
	if err != nil {
		return nil, Request{}, err
	}
	twin.freed.Store(true)
	number := []uint32{c.p.numbers.proposeAlone(c.p.dev.Rank(), c.p.dev.Size())}
	x := newCollective[uint32](c, op, coll.Allreduce, nil).toAll(view(number), view(number), Max)
	dev, err := x.post()
	if err != nil {
		return nil, Request{}, err
	}
	r := x.call.request(&idup{Op: dev, twin: twin, number: number}, false)
	r.core.collective = x
	return twin, r, nil
}

// idup is the agreement on a communicator's number as a reduction: the highest proposal, each of which is made once.
type idup struct {
	mpe.Op
	twin   *Comm
	number []uint32
}

// Wait implements mpe.Op.
func (o *idup) Wait(ctx context.Context) (mpe.Status, error) {
	st, err := o.Op.Wait(ctx)
	return st, o.end(err)
}

// Test implements mpe.Op.
func (o *idup) Test() (mpe.Status, bool, error) {
	st, done, err := o.Op.Test()
	if done {
		err = o.end(err)
	}
	return st, done, err
}

// end gives the communicator its number.
func (o *idup) end(err error) error {
	switch {
	case err != nil:
		return err
	case o.number[0] == noNumber:
		return errNumbers
	case o.twin.number == noNumber:
		o.twin.number = o.number[0]
		o.twin.freed.Store(false)
	}
	return nil
}
