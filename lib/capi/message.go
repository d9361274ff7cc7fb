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

// setMessage stores a handle for a message, and writes its status.
func (a *args) setMessage(c *comm, m *mpi.Message, st *mpi.Status, to, status int) {
	a.status(status, st)
	if st.Source != mpi.ProcNull {
		made, _ := newObject(a, a.lib.messages, to)
		made.Message, made.comm = m, c
		return
	}
	a.setHandle(to, a.lib.abi.handle(kindMessage, a.lib.abi.constants["MESSAGE_NO_PROC"]))
}

// mprobe implements MPI_Mprobe(source, tag, comm, message, status).
func (a *args) mprobe() {
	c := a.communicator(2)
	a.checkedPointer(3)
	m, st, err := mpi.Mprobe(context.Background(), c.Comm, a.peer(0), a.tag(1))
	check(err)
	a.setMessage(c, m, &st, 3, 4)
}

// improbe implements MPI_Improbe(source, tag, comm, flag, message, status).
func (a *args) improbe() {
	c := a.communicator(2)
	for i := 3; i <= 4; i++ {
		a.checkedPointer(i)
	}
	m, st, found, err := mpi.Improbe(c.Comm, a.peer(0), a.tag(1))
	check(err)
	if found {
		a.setMessage(c, m, &st, 4, 5)
	}
	a.setFlag(3, found)
}

// takeMessage consumes the message in argument 3, whose handle becomes invalid. The message is nil for
// MPI_MESSAGE_NO_PROC.
func (a *args) takeMessage() (*mpi.Message, mpi.Buffer) {
	p := a.checkedPointer(3)
	h := a.lib.handleAt(p, 0)
	if h == a.lib.abi.handle(kindMessage, a.lib.abi.constants["MESSAGE_NO_PROC"]) {
		a.clearMessage(p)
		return nil, mpi.Buffer{}
	}
	msg := a.lib.messages.get(h)
	if msg == nil {
		panic(failf(mpi.ErrRequest, "%#x is not a message of a matched probe, or has been received", h))
	}
	a.comm = msg.comm
	b := a.buffer(0)
	of := msg.Message
	a.lib.messages.remove(h)
	a.clearMessage(p)
	return of, b
}

func (a *args) clearMessage(p unsafe.Pointer) { a.lib.setHandleAt(p, 0, a.lib.abi.null[kindMessage]) }

var nullStatus = mpi.Status{Source: mpi.ProcNull, Tag: mpi.AnyTag}

// mrecv implements MPI_Mrecv(buf, count, datatype, message, status).
func (a *args) mrecv() {
	m, b := a.takeMessage()
	st, err := nullStatus, error(nil)
	if m != nil {
		st, err = m.Recv(context.Background(), b)
	}
	a.status(4, &st)
	check(err)
}

// imrecv implements MPI_Imrecv(buf, count, datatype, message, request).
func (a *args) imrecv() {
	a.checkedPointer(4)
	m, b := a.takeMessage()
	if m == nil {
		a.newRequest(4, must(a.lib.world.Irecv(mpi.Foreign.MemoryBuffer(nil, 0, a.lib.byteType), mpi.ProcNull, 0)), false)
		return
	}
	a.newRequest(4, must(m.Irecv(b)), false)
}
