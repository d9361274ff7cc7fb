package capi

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// generalized is a generalized request. The program completes it; if the request has no functions, the library does.
type generalized struct {
	lib                                    *Library
	queryFunc, freeFunc, cancelFunc, extra unsafe.Pointer
	err                                    error // of a request without functions

	once sync.Once
	done chan struct{}
	// releaseCount counts the calls of MPI_Grequest_complete and MPI_Request_free.
	releaseCount atomic.Int32
}

var _ = add(map[string]implementation{
	"Grequest_start":    (*args).generalStart,
	"Grequest_complete": (*args).generalComplete,
})

// generalStart implements MPI_Grequest_start(query_fn, free_fn, cancel_fn, extra_state, request).
func (a *args) generalStart() {
	for i := range 3 {
		a.checkedPointer(i)
	}
	r, _ := newObject(a, a.lib.requests, 4)
	r.ownDetails = &requestDetails{generalized: &generalized{lib: a.lib, queryFunc: a.pointer(0), freeFunc: a.pointer(1),
		cancelFunc: a.pointer(2),
		extra:      a.pointer(3), done: make(chan struct{})}}
}

// generalComplete implements MPI_Grequest_complete(request).
func (a *args) generalComplete() {
	h := a.handle(0, kindRequest)
	r := a.lib.requests.get(h)
	if r == nil || r.details().generalized == nil || r.details().generalized.queryFunc == nil {
		panic(failf(mpi.ErrRequest, "the request was not made by MPI_Grequest_start"))
	}
	check(r.details().generalized.complete(h))
}

// complete marks the request with handle h as complete. Further calls have no effect.
func (g *generalized) complete(h uint64) (err error) {
	g.once.Do(func() {
		close(g.done)
		err = g.release(h)
	})
	return err
}

// release frees the request once both MPI_Grequest_complete and MPI_Request_free have been called, because a
// program may free a request and complete it later.
func (g *generalized) release(h uint64) error {
	if g.releaseCount.Add(1) < 2 {
		return nil
	}
	g.lib.requests.remove(h)
	return g.free()
}

func (g *generalized) isComplete() bool {
	select {
	case <-g.done:
		return true
	default:
		return false
	}
}

// finish waits until the program has completed the request, and queries its status.
func (g *generalized) finish() (mpi.Status, error) {
	<-g.done
	st, err := g.status()
	if e := g.free(); err == nil {
		err = e
	}
	return st, err
}

// status calls the program's query function, which fills in a status in C's layout. Only its source, tag, length and
// cancellation count.
func (g *generalized) status() (mpi.Status, error) {
	if g.queryFunc == nil {
		return emptyStatus, g.err
	}
	status := make([]int64, (g.lib.abi.status.size+7)/8)
	p := unsafe.Pointer(unsafe.SliceData(status))
	st := emptyStatus
	g.lib.setStatus(p, &st)
	err := codeError(g.lib.callbacks.GeneralQuery(g.queryFunc, g.extra, p))
	st = g.lib.statusAt(p)
	layout := &g.lib.abi.status
	st.Source, st.Tag = int(*(*int32)(unsafe.Add(p, layout.source))), int(*(*int32)(unsafe.Add(p, layout.tag)))
	return st, err
}

func (g *generalized) free() error {
	if g.freeFunc == nil {
		return nil
	}
	return codeError(g.lib.callbacks.GeneralFree(g.freeFunc, g.extra))
}

// requestCancel implements MPI_Cancel.
func (g *generalized) requestCancel() error {
	if g.cancelFunc == nil {
		return nil
	}
	return codeError(g.lib.callbacks.GeneralCancel(g.cancelFunc, g.extra, g.isComplete()))
}

// generalStatus implements MPI_Request_get_status for a generalized request.
func (a *args) generalStatus(req *request) {
	done := req.details().generalized.isComplete()
	a.setFlag(1, done)
	if !done {
		return
	}
	st, err := req.details().generalized.status()
	a.status(2, &st)
	check(err)
}
