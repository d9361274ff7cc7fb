package mpi

import (
	"github.com/zrlmpi/zrlmpid/mpe"
)

// repeat is what a persistent request does each time it is started.
type repeat struct {
	words    words
	kind     mpe.OpKind // of the operation
	buffered bool
}

// SendInit makes a request that does Isend each time it is started. It is
// inactive until then, and again when it has ended and been waited for.
func SendInit[T Number](c *Comm, buf []T, dest, tag int) (*Request, error) {
	return sendInit(outCall(c, "SendInit", dest, tag), repeat{words: view(buf), kind: mpe.OpSend})
}

// SsendInit is SendInit for Issend.
func SsendInit[T Number](c *Comm, buf []T, dest, tag int) (*Request, error) {
	return sendInit(outCall(c, "SsendInit", dest, tag), repeat{words: view(buf), kind: mpe.OpSendSync})
}

// RsendInit is SendInit for Irsend.
func RsendInit[T Number](c *Comm, buf []T, dest, tag int) (*Request, error) {
	return sendInit(outCall(c, "RsendInit", dest, tag), repeat{words: view(buf), kind: mpe.OpSend})
}

// BsendInit is SendInit for Ibsend.
func BsendInit[T Number](c *Comm, buf []T, dest, tag int) (*Request, error) {
	return sendInit(outCall(c, "BsendInit", dest, tag), repeat{words: view(buf), kind: mpe.OpSend, buffered: true})
}

// RecvInit is SendInit for Irecv.
func RecvInit[T Number](c *Comm, buf []T, source, tag int) (*Request, error) {
	w := view(buf)
	k := inCall(c, "RecvInit", source, tag, w)
	if _, err := k.operation(repeat{words: w, kind: mpe.OpRecv}); err != nil {
		return nil, err
	}
	return &Request{call: k, repeat: &repeat{words: w, kind: mpe.OpRecv}}, nil
}

func sendInit(k call, again repeat) (*Request, error) {
	if _, err := k.operation(again); err != nil {
		return nil, err
	}
	return &Request{call: k, repeat: &again}, nil
}

// operation checks what is to be repeated, and describes it to the device.
func (k call) operation(again repeat) (mpe.Operation, error) {
	switch {
	case k.peer == ProcNull:
		return mpe.Operation{}, k.check()
	case k.send:
		return k.outgoing(again.kind, again.words)
	}
	return k.incoming(again.words)
}

// Start starts a persistent request, which must not be active.
func (r *Request) Start() error {
	if r == nil {
		return errorf(ErrRequest, "Start", "the request is nil")
	}
	if r.repeat == nil {
		return r.call.failf(ErrRequest, "only persistent requests, such as those of SendInit, can be started")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != inactive {
		return r.call.failf(ErrRequest, "the request is active: wait for it before starting it again")
	}
	o, err := r.call.operation(*r.repeat)
	switch {
	case err != nil:
		return err
	case r.call.peer == ProcNull:
		r.state, r.status, r.err = ended, r.call.null(), nil
		return nil
	case r.repeat.buffered:
		if err := r.call.comm.p.buffer.send(r.call, o); err != nil {
			return err
		}
		r.state, r.status, r.err = ended, emptyStatus, nil
		return nil
	}
	op, err := r.call.comm.p.dev.Start(o)
	if err != nil {
		return r.call.fail(err)
	}
	r.state, r.op = active, op
	return nil
}

// Startall starts persistent requests in order. If one cannot be started, those
// before it have been.
func Startall(requests []*Request) error {
	for i, r := range requests {
		if err := r.Start(); err != nil {
			return errorf(ClassOf(err), "Startall", "request %d of %d: %w", i, len(requests), err)
		}
	}
	return nil
}
