package capi

import (
	"github.com/zrlmpi/zrlmpid/mpi"
)

var _ = add(map[string]implementation{
	"Psend_init":   func(a *args) { a.partitionedInit((*mpi.Comm).PsendInit, a.peer(4), a.tag(5)) },
	"Precv_init":   func(a *args) { a.partitionedInit((*mpi.Comm).PrecvInit, a.peer(4), a.tag(5)) },
	"Pready":       func(a *args) { check(a.partitioned(1).Pready(a.int(0), a.int(0))) },
	"Pready_range": func(a *args) { check(a.partitioned(2).Pready(a.int(0), a.int(1))) },
	"Pready_list":  (*args).readyList,
	"Parrived":     (*args).arrived,
})

// partitionedInit implements MPI_Psend_init(buf, partitions, count, datatype, dest, tag, comm, info, request) and
// MPI_Precv_init.
func (a *args) partitionedInit(describe func(c *mpi.Comm, b mpi.Buffer, partitions, peer, tag int) (*mpi.Partitioned,
	error), peer, tag int) {
	c := a.communicator(6)
	parts := a.arrayLen(1)
	n, t := a.countAndType(2)
	b := a.scaledBuffer(0, n, t, int64(parts))
	a.checkedPointer(8)
	p := must(describe(c.Comm, b, parts, peer, tag))
	r, _ := newObjectOr(a, a.lib.requests, 8, func() { _ = p.Free() })
	r.ownDetails, r.comm = &requestDetails{persistent: true, partitioned: p, restart: p.Start}, c
}

// partitioned returns the partitioned message that a request stands for.
func (a *args) partitioned(i int) *mpi.Partitioned {
	r := must(a.lib.request(a.handle(i, kindRequest)))
	if r == nil || r.details().partitioned == nil {
		panic(failf(mpi.ErrRequest, "the request was not made by MPI_Psend_init or MPI_Precv_init"))
	}
	a.comm = r.comm
	return r.details().partitioned
}

// readyList implements MPI_Pready_list(length, array_of_partitions, request).
func (a *args) readyList() {
	list := a.countedInts(0, 1)
	p := a.partitioned(2)
	for _, i := range list {
		check(p.Pready(i, i))
	}
}

// arrived implements MPI_Parrived(request, partition, flag).
func (a *args) arrived() {
	a.checkedPointer(2)
	if a.handle(0, kindRequest) == a.lib.abi.null[kindRequest] { // MPI 4.0, section 4.2.2
		a.setFlag(2, true)
		return
	}
	a.setFlag(2, must(a.partitioned(0).Parrived(a.int(1))))
}
