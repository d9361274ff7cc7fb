package capi

import (
	"context"
	"math"
	"time"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// request is a request that a program has the handle of.
type request struct {
	mpi.Request
	comm *comm
	// own is what only some requests have; nil if there is none of it. Programs have millions of those.
	own *special
}

// special has the fields that few requests need.
type special struct {
	// persistent: its handle is the program's until it frees the request.
	persistent bool
	// send is the other half of MPI_Isendrecv, whose status is that of the receive, and to is the memory of what it sends.
	send mpi.Request
	to   []byte
	// begin starts a persistent request of a collective call again.
	begin func() (mpi.Request, error)
	// general is that of MPI_Grequest_start.
	general *general
	// partitioned is that of MPI_Psend_init or MPI_Precv_init.
	partitioned *mpi.Partitioned
}

var (
	ordinary   special
	persistent = special{persistent: true}
)

// special returns what only some requests have, which is not to be changed.
func (r *request) special() *special {
	if r.own == nil {
		return &ordinary
	}
	return r.own
}

// active reports whether the request is to be waited for.
func (r *request) active() bool {
	return r.special().general != nil || r.Active() || r.special().send.Active()
}

// done reports whether all of it has ended, and changes nothing.
func (r *request) done() bool {
	if r.special().general != nil {
		return r.special().general.completed()
	}
	_, a, _ := r.Peek()
	_, b, _ := r.special().send.Peek()
	return a && b
}

// finish waits for all of it. The standard gives the status of a send no source and no tag: unset leaves what the program has there, as
// MPICH does, of whose programs some read it.
func (r *request) finish() (mpi.Status, error) {
	if r.special().general != nil {
		return r.special().general.finish()
	}
	inactive := r.special().persistent && !r.Active()
	st, err := mpi.WaitBoth(context.Background(), r.Request, r.special().send)
	if st.Source == mpi.AnySource && !inactive {
		st.Source = unset
	}
	return st, err
}

// unset is the source of a status of which setStatus sets nothing but whether the request was cancelled.
const unset = math.MinInt

// await waits until one of the requests may have ended.
func await(list []*request) {
	var few [16]mpi.Request
	parts, general := few[:0], false
	for _, r := range list {
		switch {
		case r == nil || !r.active():
		case r.special().general != nil:
			general = true
		default:
			for _, part := range [...]mpi.Request{r.Request, r.special().send} {
				if _, done, _ := part.Peek(); !done {
					parts = append(parts, part)
				}
			}
		}
	}
	if general { // its end wakes nobody who waits for several
		time.Sleep(generalPoll)
		return
	}
	mpi.Foreign.Await(context.Background(), parts)
}

// awaitAll waits until all of the requests have ended, or one has failed because its peer does not go on. It reports
// whether it is to be waited for those that have not ended.
func awaitAll(list []*request) bool {
	var few [16]mpi.Request
	parts := few[:0]
	for _, r := range list {
		switch {
		case r == nil || !r.active():
		case r.special().general != nil:
			return true
		default:
			parts = append(parts, r.Request, r.special().send)
		}
	}
	return mpi.Foreign.AwaitAll(context.Background(), parts)
}

// generalPoll is how often a caller that waits for several requests asks for generalized ones among them.
const generalPoll = 20 * time.Microsecond

var _ = add(map[string]implementation{
	"Wait":               (*args).wait,
	"Test":               (*args).test,
	"Waitall":            func(a *args) error { return a.all(2, true) },
	"Testall":            func(a *args) error { return a.all(3, false) },
	"Waitany":            func(a *args) error { return a.any(true) },
	"Testany":            func(a *args) error { return a.any(false) },
	"Waitsome":           func(a *args) error { return a.some(true) },
	"Testsome":           func(a *args) error { return a.some(false) },
	"Request_free":       (*args).requestFree,
	"Request_get_status": (*args).requestStatus,
	"Cancel":             (*args).cancel,
	"Start":              (*args).start,
	"Startall":           (*args).startall,
})

// newRequest gives a request that was started a handle.
func (a *args) newRequest(i int, r mpi.Request, err error, again bool) error {
	if err != nil {
		return err
	}
	p, err := a.where(i)
	if err != nil {
		cancelAll(r)
		return err
	}
	return a.l.newRequest(p, r, again, a.comm)
}

// newRequest does so where the handle is to be.
func (l *Library) newRequest(p unsafe.Pointer, r mpi.Request, again bool, c *comm) error {
	made, handle, err := l.requests.take()
	if err != nil {
		cancelAll(r)
		return err
	}
	if made.Request, made.comm = r, c; again {
		made.own = &persistent
	}
	l.setHandleAt(p, 0, handle)
	return nil
}

// cancelAll ends requests that the program cannot have.
func cancelAll(list ...mpi.Request) {
	ended, end := context.WithCancel(context.Background())
	end()
	for _, r := range list {
		_, _ = r.Wait(ended) // the error of the call is the one to report
		_ = r.Free()         // if it is persistent
	}
}

// request returns the request of a handle, or nil if that is MPI_REQUEST_NULL.
func (l *Library) request(h uint64) (*request, error) {
	if h == l.abi.null[kindRequest] {
		return nil, nil
	}
	r := l.requests.get(h)
	if r == nil {
		return nil, errorf(mpi.ErrRequest, "%#x is no request, or has been waited for", h)
	}
	return r, nil
}

// requestIn returns the request whose handle argument 0 points to, and that pointer.
func (a *args) requestIn() (r *request, p unsafe.Pointer, err error) {
	if p, err = a.where(0); err != nil {
		return nil, nil, err
	}
	r, err = a.l.request(a.l.handleAt(p, 0))
	return r, p, err
}

// validRequest is the request of element n of an array, which must not be MPI_REQUEST_NULL.
func (a *args) validRequest(p unsafe.Pointer, n int) (*request, error) {
	r, err := a.l.request(a.l.handleAt(p, n))
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, errorf(mpi.ErrRequest, "the request is MPI_REQUEST_NULL")
	}
	a.comm = r.comm
	return r, nil
}

// over forgets the request of element n of an array, which has ended, unless it is persistent.
func (a *args) over(p unsafe.Pointer, n int, r *request) {
	if !r.special().persistent {
		a.forgetRequest(p, n)
	}
}

func (a *args) forgetRequest(p unsafe.Pointer, n int) {
	a.l.requests.remove(a.l.handleAt(p, n))
	a.l.setHandleAt(p, n, a.l.abi.null[kindRequest])
}

var emptyStatus = mpi.Status{Source: mpi.AnySource, Tag: mpi.AnyTag}

func (a *args) wait() error {
	r, p, err := a.requestIn()
	if err != nil {
		return err
	}
	st := emptyStatus
	if r != nil {
		a.comm = r.comm
		st, err = r.finish()
		a.over(p, 0, r)
	}
	a.status(1, &st)
	return err
}

func (a *args) test() error {
	r, p, err := a.requestIn()
	if err != nil {
		return err
	}
	if _, err := a.where(1); err != nil {
		return err
	}
	st, done := emptyStatus, true
	if r != nil {
		a.comm = r.comm
		if done = r.done(); done {
			st, err = r.finish()
			a.over(p, 0, r)
		}
	}
	if e := a.setFlag(1, done); e != nil {
		return e
	}
	if done {
		a.status(2, &st)
	}
	return err
}

// free has the request go on by itself, if it is active.
func (r *request) free() error {
	switch {
	case r.special().partitioned != nil:
		return r.special().partitioned.Free()
	case r.special().begin != nil && !r.Active():
		return nil
	case r.special().send != mpi.Request{}:
		if err := r.special().send.Free(); err != nil {
			return err
		}
	}
	return r.Free()
}

func (a *args) requestFree() error {
	p, err := a.where(0)
	if err != nil {
		return err
	}
	r, err := a.validRequest(p, 0)
	if err != nil {
		return err
	}
	if r.special().general != nil {
		h := a.l.handleAt(p, 0)
		a.l.setHandleAt(p, 0, a.l.abi.null[kindRequest])
		return r.special().general.release(h)
	}
	if err := r.free(); err != nil {
		return err
	}
	a.forgetRequest(p, 0)
	return nil
}

func (a *args) requestStatus() error {
	r, err := a.l.request(a.handle(0, kindRequest))
	if err != nil {
		return err
	}
	if r == nil {
		st := emptyStatus
		a.status(2, &st)
		return a.setFlag(1, true)
	}
	a.comm = r.comm
	if r.special().general != nil {
		return a.generalStatus(r)
	}
	st, _, err := r.Peek()
	done := r.done()
	if !done {
		err = nil
	}
	if e := a.setFlag(1, done); e != nil {
		return e
	}
	if done {
		a.status(2, &st)
	}
	return err
}

func (a *args) cancel() error {
	p, err := a.where(0)
	if err != nil {
		return err
	}
	r, err := a.validRequest(p, 0)
	if err != nil {
		return err
	}
	if g := r.special().general; g != nil {
		return g.stop()
	}
	return r.Cancel()
}

func (a *args) start() error {
	p, err := a.where(0)
	if err != nil {
		return err
	}
	return a.startAt(p, 0)
}

func (a *args) startAt(p unsafe.Pointer, i int) error {
	r, err := a.validRequest(p, i)
	if err != nil {
		return err
	}
	if r.special().begin == nil {
		return r.Start()
	}
	if r.Active() {
		return errorf(mpi.ErrRequest, "the request is active: wait for it before starting it again")
	}
	r.Request, err = r.special().begin()
	return err
}

func (a *args) startall() error {
	n := a.int(0)
	if n <= 0 {
		return nil
	}
	p, err := a.where(1)
	for i := 0; i < n && err == nil; i++ {
		err = a.startAt(p, i)
	}
	return err
}
