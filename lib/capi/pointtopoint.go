package capi

import (
	"context"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpi"
)

var _ = add(map[string]implementation{
	"Send":  func(a *args) error { return a.send((*mpi.Comm).Send) },
	"Ssend": func(a *args) error { return a.send((*mpi.Comm).Ssend) },
	"Rsend": func(a *args) error { return a.send((*mpi.Comm).Rsend) },
	"Bsend": func(a *args) error {
		return a.send(func(c *mpi.Comm, _ context.Context, b mpi.Buffer, dest, tag int) error { return c.Bsend(b, dest, tag) })
	},
	"Isend":      func(a *args) error { return a.isend((*mpi.Comm).Isend, false) },
	"Issend":     func(a *args) error { return a.isend((*mpi.Comm).Issend, false) },
	"Irsend":     func(a *args) error { return a.isend((*mpi.Comm).Irsend, false) },
	"Ibsend":     func(a *args) error { return a.isend((*mpi.Comm).Ibsend, false) },
	"Send_init":  func(a *args) error { return a.isend((*mpi.Comm).SendInit, true) },
	"Ssend_init": func(a *args) error { return a.isend((*mpi.Comm).SsendInit, true) },
	"Rsend_init": func(a *args) error { return a.isend((*mpi.Comm).RsendInit, true) },
	"Bsend_init": func(a *args) error { return a.isend((*mpi.Comm).BsendInit, true) },
	"Recv":       (*args).recv,
	"Irecv":      func(a *args) error { return a.irecv((*mpi.Comm).Irecv, false) },
	"Recv_init":  func(a *args) error { return a.irecv((*mpi.Comm).RecvInit, true) },
	"Probe":      (*args).probe,
	"Iprobe":     (*args).iprobe,

	"Sendrecv":          (*args).sendrecv,
	"Sendrecv_replace":  (*args).sendrecvReplace,
	"Isendrecv":         (*args).isendrecv,
	"Isendrecv_replace": (*args).isendrecvReplace,
})

// toPeer decodes the arguments of a call with a buffer and a rank: buf, count, datatype, rank, tag, comm.
func (a *args) toPeer() (*comm, mpi.Buffer, error) {
	c, err := a.communicator(5)
	if err != nil {
		return nil, mpi.Buffer{}, err
	}
	b, err := a.buffer(0)
	return c, b, err
}

func (a *args) send(do func(*mpi.Comm, context.Context, mpi.Buffer, int, int) error) error {
	c, b, err := a.toPeer()
	if err != nil {
		return err
	}
	return do(c.Comm, context.Background(), b, a.destination(3), a.sendTag(4))
}

func (a *args) isend(do func(*mpi.Comm, mpi.Buffer, int, int) (mpi.Request, error), persistent bool) error {
	c, b, err := a.toPeer()
	if err != nil {
		return err
	}
	if _, err := a.where(6); err != nil {
		return err
	}
	r, err := do(c.Comm, b, a.destination(3), a.sendTag(4))
	return a.newRequest(6, r, err, persistent)
}

func (a *args) recv() error {
	c, b, err := a.toPeer()
	if err != nil {
		return err
	}
	st, err := c.Recv(context.Background(), b, a.peer(3), a.tag(4))
	a.status(6, &st)
	return err
}

func (a *args) irecv(do func(*mpi.Comm, mpi.Buffer, int, int) (mpi.Request, error), persistent bool) error {
	c, b, err := a.toPeer()
	if err != nil {
		return err
	}
	if _, err := a.where(6); err != nil {
		return err
	}
	r, err := do(c.Comm, b, a.peer(3), a.tag(4))
	return a.newRequest(6, r, err, persistent)
}

func (a *args) probe() error {
	c, err := a.communicator(2)
	if err != nil {
		return err
	}
	st, err := mpi.Probe(context.Background(), c.Comm, a.peer(0), a.tag(1))
	if err == nil {
		a.status(3, &st)
	}
	return err
}

func (a *args) iprobe() error {
	c, err := a.communicator(2)
	if err != nil {
		return err
	}
	st, found, err := mpi.Iprobe(c.Comm, a.peer(0), a.tag(1))
	if err != nil {
		return err
	}
	if found {
		a.status(4, &st)
	}
	return a.setFlag(3, found)
}

func (a *args) sendrecv() error {
	c, err := a.communicator(10)
	if err != nil {
		return err
	}
	send, err := a.buffer(0)
	if err != nil {
		return err
	}
	recv, err := a.buffer(5)
	if err != nil {
		return err
	}
	st, err := c.Sendrecv(context.Background(), send, a.destination(3), a.sendTag(4), recv, a.peer(8), a.tag(9))
	a.status(11, &st)
	return err
}

func (a *args) sendrecvReplace() error {
	c, err := a.communicator(7)
	if err != nil {
		return err
	}
	b, err := a.buffer(0)
	if err != nil {
		return err
	}
	st, err := c.SendrecvReplace(context.Background(), b, a.destination(3), a.sendTag(4), a.peer(5), a.tag(6))
	a.status(8, &st)
	return err
}

// both posts a receive and a send with one request.
func (a *args) both(c *comm, recv mpi.Buffer, source, recvtag int, send mpi.Buffer, dest, sendtag int, to []byte, i int) error {
	if _, err := a.where(i); err != nil {
		return err
	}
	in, err := c.Irecv(recv, source, recvtag)
	if err != nil {
		return err
	}
	out, err := c.Isend(send, dest, sendtag)
	if err != nil {
		cancelAll(in)
		return err
	}
	r, _, err := give(a, a.l.requests, i)
	if err != nil {
		cancelAll(in, out)
		return err
	}
	r.Request, r.comm, r.own = in, c, &special{send: out, to: to}
	return nil
}

func (a *args) isendrecv() error {
	c, err := a.communicator(10)
	if err != nil {
		return err
	}
	send, err := a.buffer(0)
	if err != nil {
		return err
	}
	recv, err := a.buffer(5)
	if err != nil {
		return err
	}
	return a.both(c, recv, a.peer(8), a.tag(9), send, a.destination(3), a.sendTag(4), nil, 11)
}

// isendrecvReplace: buf, count, datatype, dest, sendtag, source, recvtag, comm, request. It sends a copy.
func (a *args) isendrecvReplace() error {
	c, err := a.communicator(7)
	if err != nil {
		return err
	}
	b, err := a.buffer(0)
	if err != nil {
		return err
	}
	elements, t, err := a.packed(0, 1, 2, 7)
	if err != nil {
		return err
	}
	packed := make([]byte, elements.count*t.Size())
	t.Pack(packed, elements.at, elements.count, 0)
	send := mpi.Foreign.Memory(unsafe.Pointer(unsafe.SliceData(packed)), int64(len(packed)), a.l.bytes)
	return a.both(c, b, a.peer(5), a.tag(6), send, a.destination(3), a.sendTag(4), packed, 8)
}
