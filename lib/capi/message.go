package capi

import (
	"context"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// message is a message found by a matched probe. The Message of MPI_MESSAGE_NO_PROC is nil.
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

// found stores a handle for a message, and writes its status.
func (a *args) found(c *comm, m *mpi.Message, st *mpi.Status, to, status int) {
	a.status(status, st)
	if st.Source != mpi.ProcNull {
		made, _ := give(a, a.l.messages, to)
		made.Message, made.comm = m, c
		return
	}
	a.setHandle(to, a.l.abi.handle(kindMessage, a.l.abi.constants["MESSAGE_NO_PROC"]))
}

// mprobe implements MPI_Mprobe(source, tag, comm, message, status).
func (a *args) mprobe() {
	c := a.communicator(2)
	a.where(3)
	m, st, err := mpi.Mprobe(context.Background(), c.Comm, a.peer(0), a.tag(1))
	check(err)
	a.found(c, m, &st, 3, 4)
}

// improbe implements MPI_Improbe(source, tag, comm, flag, message, status).
func (a *args) improbe() {
	c := a.communicator(2)
	for i := 3; i <= 4; i++ {
		a.where(i)
	}
	m, st, found, err := mpi.Improbe(c.Comm, a.peer(0), a.tag(1))
	check(err)
	if found {
		a.found(c, m, &st, 4, 5)
	}
	a.setFlag(3, found)
}

// claimed consumes the message in argument 3, whose handle becomes invalid. The message is nil for
// MPI_MESSAGE_NO_PROC.
func (a *args) claimed() (*mpi.Message, mpi.Buffer) {
	p := a.where(3)
	h := a.l.handleAt(p, 0)
	if h == a.l.abi.handle(kindMessage, a.l.abi.constants["MESSAGE_NO_PROC"]) {
		a.forget(p)
		return nil, mpi.Buffer{}
	}
	m := a.l.messages.get(h)
	if m == nil {
		panic(failf(mpi.ErrRequest, "%#x is no message of a matched probe, or has been received", h))
	}
	a.comm = m.comm
	b := a.buffer(0)
	of := m.Message
	a.l.messages.remove(h)
	a.forget(p)
	return of, b
}

func (a *args) forget(p unsafe.Pointer) { a.l.setHandleAt(p, 0, a.l.abi.null[kindMessage]) }

var nullStatus = mpi.Status{Source: mpi.ProcNull, Tag: mpi.AnyTag}

// mrecv implements MPI_Mrecv(buf, count, datatype, message, status).
func (a *args) mrecv() {
	m, b := a.claimed()
	st, err := nullStatus, error(nil)
	if m != nil {
		st, err = m.Recv(context.Background(), b)
	}
	a.status(4, &st)
	check(err)
}

// imrecv implements MPI_Imrecv(buf, count, datatype, message, request).
func (a *args) imrecv() {
	a.where(4)
	m, b := a.claimed()
	if m == nil {
		a.newRequest(4, must(a.l.world.Irecv(mpi.Foreign.Memory(nil, 0, a.l.bytes), mpi.ProcNull, 0)), false)
		return
	}
	a.newRequest(4, must(m.Irecv(b)), false)
}
