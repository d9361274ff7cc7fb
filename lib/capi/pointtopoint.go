package capi

import (
	"context"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpi"
)

var _ = add(map[string]implementation{
	"Send":  func(a *args) { a.send((*mpi.Comm).Send) },
	"Ssend": func(a *args) { a.send((*mpi.Comm).Ssend) },
	"Rsend": func(a *args) { a.send((*mpi.Comm).Rsend) },
	"Bsend": func(a *args) {
		a.send(func(c *mpi.Comm, _ context.Context, b mpi.Buffer, dest, tag int) error { return c.Bsend(b, dest, tag) })
	},
	"Isend":      func(a *args) { a.isend((*mpi.Comm).Isend, false) },
	"Issend":     func(a *args) { a.isend((*mpi.Comm).Issend, false) },
	"Irsend":     func(a *args) { a.isend((*mpi.Comm).Irsend, false) },
	"Ibsend":     func(a *args) { a.isend((*mpi.Comm).Ibsend, false) },
	"Send_init":  func(a *args) { a.isend((*mpi.Comm).SendInit, true) },
	"Ssend_init": func(a *args) { a.isend((*mpi.Comm).SsendInit, true) },
	"Rsend_init": func(a *args) { a.isend((*mpi.Comm).RsendInit, true) },
	"Bsend_init": func(a *args) { a.isend((*mpi.Comm).BsendInit, true) },
	"Recv":       (*args).recv,
	"Irecv":      func(a *args) { a.irecv((*mpi.Comm).Irecv, false) },
	"Recv_init":  func(a *args) { a.irecv((*mpi.Comm).RecvInit, true) },
	"Probe":      (*args).probe,
	"Iprobe":     (*args).iprobe,

	"Sendrecv":          (*args).sendrecv,
	"Sendrecv_replace":  (*args).sendrecvReplace,
	"Isendrecv":         (*args).isendrecv,
	"Isendrecv_replace": (*args).isendrecvReplace,
})

// peerArgs decodes the arguments of a call with a buffer and a rank: buf, count, datatype, rank, tag, comm.
func (a *args) peerArgs() (*comm, mpi.Buffer) {
	return a.communicator(5), a.buffer(0)
}

func (a *args) send(do func(*mpi.Comm, context.Context, mpi.Buffer, int, int) error) {
	c, b := a.peerArgs()
	check(do(c.Comm, context.Background(), b, a.peer(3), a.tag(4)))
}

func (a *args) isend(do func(*mpi.Comm, mpi.Buffer, int, int) (mpi.Request, error), persistent bool) {
	c, b := a.peerArgs()
	a.checkedPointer(6)
	a.newRequest(6, must(do(c.Comm, b, a.peer(3), a.tag(4))), persistent)
}

// recv implements MPI_Recv(buf, count, datatype, source, tag, comm, status).
func (a *args) recv() {
	c, b := a.peerArgs()
	st, err := c.Recv(context.Background(), b, a.peer(3), a.tag(4))
	a.status(6, &st)
	check(err)
}

func (a *args) irecv(do func(*mpi.Comm, mpi.Buffer, int, int) (mpi.Request, error), persistent bool) {
	c, b := a.peerArgs()
	a.checkedPointer(6)
	a.newRequest(6, must(do(c.Comm, b, a.peer(3), a.tag(4))), persistent)
}

// probe implements MPI_Probe(source, tag, comm, status).
func (a *args) probe() {
	c := a.communicator(2)
	st, err := mpi.Probe(context.Background(), c.Comm, a.peer(0), a.tag(1))
	if err == nil {
		a.status(3, &st)
	}
	check(err)
}

// iprobe implements MPI_Iprobe(source, tag, comm, flag, status).
func (a *args) iprobe() {
	c := a.communicator(2)
	st, found, err := mpi.Iprobe(c.Comm, a.peer(0), a.tag(1))
	check(err)
	if found {
		a.status(4, &st)
	}
	a.setFlag(3, found)
}

// sendrecv implements MPI_Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source,
// recvtag, comm, status).
func (a *args) sendrecv() {
	c := a.communicator(10)
	send := a.buffer(0)
	recv := a.buffer(5)
	st, err := c.Sendrecv(context.Background(), send, a.peer(3), a.tag(4), recv, a.peer(8), a.tag(9))
	a.status(11, &st)
	check(err)
}

// sendrecvReplace implements MPI_Sendrecv_replace(buf, count, datatype, dest, sendtag, source, recvtag, comm, status).
func (a *args) sendrecvReplace() {
	c := a.communicator(7)
	b := a.buffer(0)
	st, err := c.SendrecvReplace(context.Background(), b, a.peer(3), a.tag(4), a.peer(5), a.tag(6))
	a.status(8, &st)
	check(err)
}

// startSendrecv posts a receive and a send under one request.
func (a *args) startSendrecv(c *comm, recv mpi.Buffer, source, recvtag int, send mpi.Buffer, dest, sendtag int,
	to []byte,
	i int) {
	a.checkedPointer(i)
	in := must(c.Irecv(recv, source, recvtag))
	out, err := c.Isend(send, dest, sendtag)
	if err != nil {
		cancelAll(in)
	}
	check(err)
	r, _ := newObjectOr(a, a.lib.requests, i, func() { cancelAll(in, out) })
	r.Request, r.comm, r.ownDetails = in, c, &requestDetails{send: out, sendCopy: to}
}

// isendrecv implements MPI_Isendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source,
// recvtag, comm, request).
func (a *args) isendrecv() {
	c := a.communicator(10)
	send := a.buffer(0)
	recv := a.buffer(5)
	a.startSendrecv(c, recv, a.peer(8), a.tag(9), send, a.peer(3), a.tag(4), nil, 11)
}

// isendrecvReplace implements MPI_Isendrecv_replace(buf, count, datatype, dest, sendtag, source, recvtag, comm,
// request). It sends a copy.
func (a *args) isendrecvReplace() {
	c := a.communicator(7)
	b := a.buffer(0)
	elements, t := a.elementsArg(0, 1, 2, 7)
	packed := make([]byte, elements.count*t.Size())
	t.Pack(packed, elements.at, elements.count, 0)
	send := mpi.Foreign.MemoryBuffer(unsafe.Pointer(unsafe.SliceData(packed)), int64(len(packed)), a.lib.byteType)
	a.startSendrecv(c, b, a.peer(5), a.tag(6), send, a.peer(3), a.tag(4), packed, 8)
}
