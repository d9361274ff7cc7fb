package capi

import (
	"github.com/zrlmpi/zrlmpid/mpi"
)

var _ = add(map[string]implementation{
	"Psend_init": func(a *args) error { return a.partitionedInit((*mpi.Comm).PsendInit, a.destination(4), a.sendTag(5)) },
	"Precv_init": func(a *args) error { return a.partitionedInit((*mpi.Comm).PrecvInit, a.peer(4), a.tag(5)) },
	"Pready": func(a *args) error {
		return a.ready(1, func(p *mpi.Partitioned) error { return p.Pready(a.int(0), a.int(0)) })
	},
	"Pready_range": func(a *args) error {
		return a.ready(2, func(p *mpi.Partitioned) error { return p.Pready(a.int(0), a.int(1)) })
	},
	"Pready_list": (*args).readyList,
	"Parrived":    (*args).arrived,
})

// partitionedInit: buffer, partitions, count of each, datatype, rank, tag, comm, info, request.
func (a *args) partitionedInit(describe func(c *mpi.Comm, b mpi.Buffer, partitions, peer, tag int) (*mpi.Partitioned, error), peer, tag int) error {
	c, err := a.communicator(6)
	if err != nil {
		return err
	}
	parts, err := a.number(1)
	if err != nil {
		return err
	}
	n, t, err := a.counted(2)
	if err != nil {
		return err
	}
	b, err := a.times(0, n, t, int64(parts))
	if err != nil {
		return err
	}
	if _, err := a.where(8); err != nil {
		return err
	}
	p, err := describe(c.Comm, b, parts, peer, tag)
	if err != nil {
		return err
	}
	r, _, err := give(a, a.l.requests, 8)
	if err != nil {
		_ = p.Free() // the handle's error is the one to report
		return err
	}
	r.own, r.comm = &special{persistent: true, partitioned: p, begin: p.Start}, c
	return nil
}

// partitioned is the partitioned message of a request.
func (a *args) partitioned(i int) (*mpi.Partitioned, error) {
	r, err := a.l.request(a.handle(i, kindRequest))
	switch {
	case err != nil:
		return nil, err
	case r == nil || r.special().partitioned == nil:
		return nil, errorf(mpi.ErrRequest, "the request is not one of MPI_Psend_init or MPI_Precv_init")
	}
	a.comm = r.comm
	return r.special().partitioned, nil
}

func (a *args) ready(request int, do func(p *mpi.Partitioned) error) error {
	p, err := a.partitioned(request)
	if err != nil {
		return err
	}
	return do(p)
}

// readyList: length, partitions, request.
func (a *args) readyList() error {
	list, err := a.countedInts(0, 1)
	if err != nil {
		return err
	}
	return a.ready(2, func(p *mpi.Partitioned) error {
		for _, i := range list {
			if err := p.Pready(i, i); err != nil {
				return err
			}
		}
		return nil
	})
}

// arrived: request, partition, flag.
func (a *args) arrived() error {
	if _, err := a.where(2); err != nil {
		return err
	}
	if a.handle(0, kindRequest) == a.l.abi.null[kindRequest] { // MPI 4.0, section 4.2.2
		return a.setFlag(2, true)
	}
	p, err := a.partitioned(0)
	if err != nil {
		return err
	}
	done, err := p.Parrived(a.int(1))
	if err != nil {
		return err
	}
	return a.setFlag(2, done)
}
