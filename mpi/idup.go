package mpi

import (
	"context"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Idup starts Dup and returns (MPI_Comm_idup, section 7.4.2). Calls on the new communicator return ErrComm
// until the request is done, and also if it fails. Attributes are copied immediately. Idup counts as one of the
// collective calls on c.
func (c *Comm) Idup() (*Comm, Request, error) {
	const op = "Idup"
	k := c.newCall(op)
	if err := k.check(); err != nil {
		return nil, Request{}, err
	}
	a := c.newAgreement(k, c.participants(), 0)
	if err := a.check(); err != nil {
		return nil, Request{}, err
	}
	twin, err := c.copyAttributes(op, c.cloneWithNumber(noNumber))
	if err != nil {
		return nil, Request{}, err
	}
	twin.freed.Store(true)
	o := &idup{newComm: twin, numbers: []uint32{c.proc.numbers.proposeUnique(c.proc.dev.Rank(), c.proc.dev.Size())}}
	var x *collectiveCall
	if c.remote == nil {
		numbers := bufferOf(o.numbers)
		x = c.newCollective(op, coll.Allreduce, elementOf(numbers.datatype, nil), nil).setReduction(&numbers, &numbers, Max)
		o.Op, err = x.post()
	} else {
		x, err = o.exchangeProposals(c, a)
	}
	if err != nil {
		return nil, Request{}, err
	}
	r := x.call.newRequest(o, false)
	r.core.collective = x
	return twin, r, nil
}

// idup is the operation by which the members agree on a new communicator's number. It is a collective call that
// computes the maximum of all proposals. Each number is proposed only once.
type idup struct {
	mpe.Op
	newComm *Comm
	// numbers holds the highest proposal or, on an intercommunicator, the proposals of all ranks of both groups.
	numbers []uint32
}

// exchangeProposals starts the exchange of proposals between all ranks of both groups of an intercommunicator. A
// reduction would not suffice, because it would give a rank only the result of the other group.
func (o *idup) exchangeProposals(c *Comm, a *agreement) (*collectiveCall, error) {
	x, round := c.interRound(a.call.op, element{size: 4})
	mine := o.numbers
	o.numbers = make([]uint32, len(a.members))
	o.numbers[a.myIndex] = mine[0]
	if round.assignTag() {
		for i, world := range a.members {
			if i != a.myIndex {
				round.addMessage(mpe.OpRecv, world, i, asBytes(o.numbers[i:i+1]))
			}
		}
		for i, world := range a.members {
			if i != a.myIndex {
				round.addMessage(mpe.OpSend, world, i, asBytes(mine))
			}
		}
	}
	o.Op = round
	return x, round.cancelOnError()
}

// Await implements mpe.Op.
func (o *idup) Await(ctx context.Context) (*mpe.Status, error) {
	st, err := o.Op.Await(ctx)
	return st, o.assignNumber(err)
}

// Result implements mpe.Op.
func (o *idup) Result() (*mpe.Status, error) { return nil, nil }

// Test implements mpe.Op.
func (o *idup) Test() (mpe.Status, bool, error) {
	st, done, err := o.Op.Test()
	if done {
		err = o.assignNumber(err)
	}
	return st, done, err
}

// assignNumber sets the number of the communicator.
func (o *idup) assignNumber(err error) error {
	switch {
	case err != nil:
		return err
	case o.newComm.number != noNumber:
		return nil // already set
	}
	number := slices.Max(o.numbers)
	if number == noNumber {
		return errNoNumbers
	}
	o.newComm.number = number
	o.newComm.freed.Store(false)
	return nil
}
