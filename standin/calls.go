package standin

import (
	"context"
	"errors"
	"sync"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// calls is a Rank whose messages are counted, and a device for kernels that are
// written on package mpi.
type calls struct {
	owned
	c *counters
}

// owned is a Rank, by a name that is not that of one of its methods.
type owned = Rank

var _ mpe.Device = calls{}

func (c calls) Send(ctx context.Context, dst int, data []byte, opts mpe.Options) (mpe.Status, error) {
	st, err := c.owned.Send(ctx, dst, data, opts)
	c.c.count(st, err)
	return st, err
}

func (c calls) Recv(ctx context.Context, src int, buf []byte, opts mpe.Options) (mpe.Status, error) {
	st, err := c.owned.Recv(ctx, src, buf, opts)
	c.c.count(st, err)
	return st, err
}

// Start implements mpe.Device.
func (c calls) Start(what mpe.Operation) (mpe.Op, error) {
	op, err := c.owned.Start(what)
	if err != nil {
		return nil, err
	}
	o, _ := countedOps.Get().(*countedOp)
	if o == nil {
		o = new(countedOp)
	}
	*o = countedOp{Op: op, c: c.c}
	return o, nil
}

// countedOps are *countedOp that have been freed.
var countedOps sync.Pool

// errCloseRefused is the error of a kernel that closes its rank.
var errCloseRefused = errors.New("a kernel may not close its rank")

// Close implements mpe.Device, and refuses.
func (calls) Close(context.Context) error { return errCloseRefused }

// countedOp is an operation that is counted when its end is reported to its caller.
type countedOp struct {
	mpe.Op
	c       *counters
	counted bool
}

// Wait implements mpe.Op.
func (o *countedOp) Wait(ctx context.Context) (mpe.Status, error) {
	st, err := o.Op.Wait(ctx)
	o.count(st, err)
	return st, err
}

// Test implements mpe.Op.
func (o *countedOp) Test() (mpe.Status, bool, error) {
	st, ended, err := o.Op.Test()
	if ended {
		o.count(st, err)
	}
	return st, ended, err
}

// Free implements mpe.Op.
func (o *countedOp) Free() {
	o.Op.Free()
	*o = countedOp{}
	countedOps.Put(o)
}

func (o *countedOp) count(st mpe.Status, err error) {
	if !o.counted {
		o.counted = true
		o.c.count(st, err)
	}
}
