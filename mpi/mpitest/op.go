package mpitest

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/ctxerr"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// op is an operation that has been posted. The lock of the fabric guards it.
type op struct {
	dev       *device
	operation mpe.Operation
	notify    chan<- struct{}
	done      chan struct{}
	status    mpe.Status
	err       error
	freed     atomic.Bool

	library any
}

// checkNotFreed panics if the operation has been freed. On a real device, the goroutine might by then be using a
// different operation in the same memory.
func (x *op) checkNotFreed(call string) {
	if x.freed.Load() {
		panic(fmt.Sprintf("mpitest: %s of an operation after its Free", call))
	}
}

// Free marks the operation as freed. If an operation is used later, or is not freed by the end of a test, the
// library has a bug.
func (x *op) Free() {
	if !x.isDone() {
		panic("mpitest: Free of an operation that has not ended")
	}
	if x.freed.Swap(true) {
		panic("mpitest: the second Free of an operation")
	}
	x.dev.fabric.unfreed.Add(-1)
}

// deliver delivers a message to a matching receive, and completes both sides.
func (x *op) deliver(msg *message) {
	payload := msg.payload()
	st := x.dev.status(msg)
	n := copy(x.operation.Buf, payload)
	var err error
	if n < len(payload) {
		err = &handshake.TruncatedError{Remote: uint32(msg.from), Posted: uint32(n+3) / 4,
			Sent: uint32(len(payload)+3) / 4}
	}
	if msg.send != nil {
		msg.send.finish(mpe.Status{Send: true, Peer: x.dev.rank}, nil)
	}
	x.finish(st, err)
}

func (x *op) finish(st mpe.Status, err error) {
	x.status, x.err = st, err
	close(x.done)
	if x.notify != nil {
		notify(x.notify)
	}
}

func (x *op) isDone() bool {
	select {
	case <-x.done:
		return true
	default:
		return false
	}
}

func (x *op) Await(ctx context.Context) (*mpe.Status, error) {
	x.checkNotFreed("Await")
	select {
	case <-x.done:
		return &x.status, x.err
	default:
	}
	select {
	case <-x.done:
		return &x.status, x.err
	case <-ctx.Done():
	}
	x.abort(x.waitError(ctxerr.Cause(ctx)))
	return &x.status, x.err
}

func (x *op) Result() (*mpe.Status, error) {
	x.checkNotFreed("Ended")
	if !x.isDone() {
		return nil, nil
	}
	return &x.status, x.err
}

func (x *op) LibraryData() *any { return &x.library }

func (x *op) Test() (mpe.Status, bool, error) {
	x.checkNotFreed("Test")
	if !x.isDone() {
		return mpe.Status{}, false, nil
	}
	return x.status, true, x.err
}

func (x *op) Cancel() {
	x.checkNotFreed("Cancel")
	x.abort(mpe.ErrCancelled)
}

// abort ends a pending operation with err.
func (x *op) abort(err error) {
	fabric := x.dev.fabric
	fabric.mu.Lock()
	defer fabric.mu.Unlock()
	if x.isDone() {
		return
	}
	if x.operation.Kind == mpe.OpRecv {
		x.dev.posted = slices.DeleteFunc(x.dev.posted, func(r *op) bool { return r == x })
	} else {
		dst := fabric.ranks[x.operation.Peer]
		dst.arrived = slices.DeleteFunc(dst.arrived, func(m *message) bool { return m.send == x })
	}
	x.finish(mpe.Status{}, err)
}

func (x *op) Notify(c chan<- struct{}) {
	x.checkNotFreed("Notify")
	x.dev.fabric.mu.Lock()
	defer x.dev.fabric.mu.Unlock()
	x.notify = c
	if c != nil && x.isDone() {
		notify(c)
	}
}

// waitError is a *mpe.WaitError with a cause.
type waitError struct {
	*mpe.WaitError
	cause error
}

func (x *op) waitError(cause error) error {
	w := &mpe.WaitError{Wait: handshake.Wait{State: handshake.WaitRequest, Local: uint32(x.dev.rank),
		Remote: uint32(max(x.operation.Peer, 0))}}
	if x.operation.Kind != mpe.OpRecv {
		w.State = handshake.WaitClear
	}
	w.For = w.State.AwaitedPacket()
	return &waitError{w, cause}
}

func (e *waitError) Error() string {
	return fmt.Sprintf("%s: %v", e.Describe(e.Since), e.cause)
}

func (e *waitError) Unwrap() []error { return []error{e.WaitError, e.cause} }
