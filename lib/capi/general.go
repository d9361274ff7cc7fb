package capi

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// general is a generalized request. Either the program itself completes it, or the library does; in the second
// case it has no functions.
type general struct {
	l                           *Library
	query, freed, cancel, extra unsafe.Pointer
	err                         error // of a request without functions

	once sync.Once
	end  chan struct{}
	// releases counts the calls of MPI_Grequest_complete and MPI_Request_free.
	releases atomic.Int32
}

var _ = add(map[string]implementation{
	"Grequest_start":    (*args).generalStart,
	"Grequest_complete": (*args).generalComplete,
})

// generalStart implements MPI_Grequest_start(query_fn, free_fn, cancel_fn, extra_state, request).
func (a *args) generalStart() {
	for i := range 3 {
		a.where(i)
	}
	r, _ := give(a, a.l.requests, 4)
	r.own = &special{general: &general{l: a.l, query: a.pointer(0), freed: a.pointer(1), cancel: a.pointer(2),
		extra: a.pointer(3), end: make(chan struct{})}}
}

func (a *args) generalComplete() {
	h := a.handle(0, kindRequest)
	r := a.l.requests.get(h)
	if r == nil || r.special().general == nil || r.special().general.query == nil {
		panic(failf(mpi.ErrRequest, "the request is not one of MPI_Grequest_start"))
	}
	check(r.special().general.complete(h))
}

func (g *general) complete(h uint64) (err error) {
	g.once.Do(func() {
		close(g.end)
		err = g.release(h)
	})
	return err
}

// release frees the request once both MPI_Grequest_complete and MPI_Request_free have been called, because a
// program may free a request and complete it later.
func (g *general) release(h uint64) error {
	if g.releases.Add(1) < 2 {
		return nil
	}
	g.l.requests.remove(h)
	return g.free()
}

func (g *general) completed() bool {
	select {
	case <-g.end:
		return true
	default:
		return false
	}
}

// finish waits until the program has completed the request, and queries its status.
func (g *general) finish() (mpi.Status, error) {
	<-g.end
	st, err := g.status()
	if e := g.free(); err == nil {
		err = e
	}
	return st, err
}

func (g *general) status() (mpi.Status, error) {
	if g.query == nil {
		return emptyStatus, g.err
	}
	status := make([]int64, (g.l.abi.status.size+7)/8)
	p := unsafe.Pointer(unsafe.SliceData(status))
	st := emptyStatus
	g.l.setStatus(p, &st)
	err := codeError(g.l.back.GeneralQuery(g.query, g.extra, p))
	st = g.l.statusAt(p)
	layout := &g.l.abi.status
	st.Source, st.Tag = int(*(*int32)(unsafe.Add(p, layout.source))), int(*(*int32)(unsafe.Add(p, layout.tag)))
	return st, err
}

func (g *general) free() error {
	if g.freed == nil {
		return nil
	}
	return codeError(g.l.back.GeneralFree(g.freed, g.extra))
}

// stop implements MPI_Cancel.
func (g *general) stop() error {
	if g.cancel == nil {
		return nil
	}
	return codeError(g.l.back.GeneralCancel(g.cancel, g.extra, g.completed()))
}

// generalStatus implements MPI_Request_get_status for a generalized request.
func (a *args) generalStatus(r *request) {
	done := r.special().general.completed()
	a.setFlag(1, done)
	if !done {
		return
	}
	st, err := r.special().general.status()
	a.status(2, &st)
	check(err)
}
