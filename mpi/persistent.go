package mpi

import (
	"github.com/zrlmpi/zrlmpid/mpe"
)

// SendInit returns a persistent request that performs Isend each time it is started. The request is inactive until it
// is started, and again after the caller has waited for it. Free releases the request.
func SendInit[T Number](c *Comm, buf []T, dest, tag int) (Request, error) {
	return c.SendInit(numberBuffer(buf), dest, tag)
}

// SsendInit is SendInit for Issend.
func SsendInit[T Number](c *Comm, buf []T, dest, tag int) (Request, error) {
	return c.SsendInit(numberBuffer(buf), dest, tag)
}

// RsendInit is SendInit for Irsend.
func RsendInit[T Number](c *Comm, buf []T, dest, tag int) (Request, error) {
	return c.RsendInit(numberBuffer(buf), dest, tag)
}

// BsendInit is SendInit for Ibsend.
func BsendInit[T Number](c *Comm, buf []T, dest, tag int) (Request, error) {
	return c.BsendInit(numberBuffer(buf), dest, tag)
}

// RecvInit is SendInit for Irecv.
func RecvInit[T Number](c *Comm, buf []T, source, tag int) (Request, error) {
	return c.RecvInit(numberBuffer(buf), source, tag)
}

// persistence specifies whether and how a request can be started again.
type persistence uint8

const (
	once       persistence = iota // it cannot be started again
	unbuffered                    // it can be started again
	buffered                      // it can be started again, as a Bsend
)

// newPersistent checks an operation and returns a persistent request for it.
func (k *call) newPersistent(again persistence) (Request, error) {
	var o mpe.Operation
	if err := k.buildOperation(&o); err != nil {
		return Request{}, err
	}
	r := k.newRequest(nil, false)
	r.core.persistence = again
	return r, nil
}

// buildOperation checks the operation, and describes it in the form that the device needs.
func (k *call) buildOperation(o *mpe.Operation) error {
	switch {
	case k.peer == ProcNull:
		return k.check()
	case k.isSend():
		return k.buildSend(o)
	}
	return k.buildRecv(o)
}

const notPersistentText = "only persistent requests, which SendInit and similar calls return, can be started"

// Start starts a persistent request. The request must be inactive.
func (r Request) Start() error {
	if r.restingSends() != nil {
		return errorf(ErrRequest, "Start", notPersistentText)
	}
	c, err := r.lock("Start")
	if err != nil {
		return err
	}
	defer c.mu.Unlock()
	switch {
	case c.completed != nil:
		return errorf(ErrRequest, "Start", notPersistentText)
	case c.persistence == once:
		return c.call.failf(ErrRequest, notPersistentText)
	case c.op != nil || c.done:
		return c.call.failf(ErrRequest, "the request is active: wait for it before starting it again")
	}
	var o mpe.Operation
	if err := c.call.buildOperation(&o); err != nil {
		return err
	}
	if s := c.call.packedBuf; s != nil && c.call.isSend() {
		s.pack()
	}
	switch {
	case c.call.peer == ProcNull:
		c.done = true
	case c.persistence == buffered:
		if err := c.call.comm.sendBuffer().send(&c.call, &o); err != nil {
			return err
		}
		c.done = true
	default:
		op, err := c.call.comm.proc.dev.Start(o)
		if err != nil {
			return c.call.fail(err)
		}
		if c.call.isSend() && freeIfDone(op) {
			c.done = true
		} else {
			c.op = op
		}
	}
	return nil
}

// Startall starts persistent requests in order. If it fails to start one, the requests before that one remain started.
func Startall(requests []Request) error {
	for i, r := range requests {
		if err := r.Start(); err != nil {
			return errorf(ClassOf(err), "Startall", "request %d of %d: %w", i, len(requests), err)
		}
	}
	return nil
}
