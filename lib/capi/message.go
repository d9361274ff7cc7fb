package capi

import (
	"context"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// message is one that a matched probe has found. One from MPI_PROC_NULL is nil.
type message struct {
	*mpi.Message
	comm *comm
}

var _ = add(map[string]implementation{
	"Mprobe":  (*args).mprobe,
	"Improbe": (*args).improbe,
	"Mrecv":   (*args).mrecv,
	"Imrecv":  (*args).imrecv,
})

// found gives a message a handle, and writes its status.
func (a *args) found(c *comm, m *mpi.Message, st *mpi.Status, to, status int) error {
	a.status(status, st)
	if st.Source != mpi.ProcNull {
		made, _, err := give(a, a.l.messages, to)
		if err != nil {
			return err
		}
		made.Message, made.comm = m, c
		return nil
	}
	return a.setHandle(to, a.l.abi.handle(kindMessage, a.l.abi.constants["MESSAGE_NO_PROC"]))
}

// mprobe: source, tag, comm, message, status.
func (a *args) mprobe() error {
	c, err := a.communicator(2)
	if err != nil {
		return err
	}
	if _, err := a.where(3); err != nil {
		return err
	}
	m, st, err := mpi.Mprobe(context.Background(), c.Comm, a.peer(0), a.tag(1))
	if err != nil {
		return err
	}
	return a.found(c, m, &st, 3, 4)
}

// improbe: source, tag, comm, flag, message, status.
func (a *args) improbe() error {
	c, err := a.communicator(2)
	if err != nil {
		return err
	}
	for i := 3; i <= 4; i++ {
		if _, err := a.where(i); err != nil {
			return err
		}
	}
	m, st, found, err := mpi.Improbe(c.Comm, a.peer(0), a.tag(1))
	if err != nil {
		return err
	}
	if found {
		if err := a.found(c, m, &st, 4, 5); err != nil {
			return err
		}
	}
	return a.setFlag(3, found)
}

// claimed takes the message of argument 3, which has no handle from then on. It is nil for one from MPI_PROC_NULL.
func (a *args) claimed() (*mpi.Message, mpi.Buffer, error) {
	p, err := a.where(3)
	if err != nil {
		return nil, mpi.Buffer{}, err
	}
	h := a.l.handleAt(p, 0)
	if h == a.l.abi.handle(kindMessage, a.l.abi.constants["MESSAGE_NO_PROC"]) {
		a.forget(p)
		return nil, mpi.Buffer{}, nil
	}
	m := a.l.messages.get(h)
	if m == nil {
		return nil, mpi.Buffer{}, errorf(mpi.ErrRequest, "%#x is no message of a matched probe, or has been received", h)
	}
	a.comm = m.comm
	b, err := a.buffer(0)
	if err != nil {
		return nil, mpi.Buffer{}, err
	}
	of := m.Message
	a.l.messages.remove(h)
	a.forget(p)
	return of, b, nil
}

func (a *args) forget(p unsafe.Pointer) { a.l.setHandleAt(p, 0, a.l.abi.null[kindMessage]) }

var nullStatus = mpi.Status{Source: mpi.ProcNull, Tag: mpi.AnyTag}

// mrecv: buf, count, datatype, message, status.
func (a *args) mrecv() error {
	m, b, err := a.claimed()
	if err != nil {
		return err
	}
	st := nullStatus
	if m != nil {
		st, err = m.Recv(context.Background(), b)
	}
	a.status(4, &st)
	return err
}

// imrecv: buf, count, datatype, message, request.
func (a *args) imrecv() error {
	if _, err := a.where(4); err != nil {
		return err
	}
	m, b, err := a.claimed()
	if err != nil {
		return err
	}
	if m == nil {
		r, err := a.l.world.Irecv(mpi.Foreign.Memory(nil, 0, a.l.bytes), mpi.ProcNull, 0)
		return a.newRequest(4, r, err, false)
	}
	r, err := m.Irecv(b)
	return a.newRequest(4, r, err, false)
}
