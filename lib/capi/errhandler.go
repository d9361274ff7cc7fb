package capi

import (
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// errhandler is an error handler.
type errhandler struct {
	handle   uint64
	action   handlerAction
	function unsafe.Pointer
	// refCount is the number of objects that use the handler, plus the number of handles that the program has yet to
	// free.
	refCount int
}

// handlerAction is the effect of an error on the process.
type handlerAction uint8

const (
	// actionFatal ends the job. It is the initial action.
	actionFatal handlerAction = iota
	// actionAbort also ends the job, although the standard requires only the end of a communicator's processes.
	actionAbort
	// actionReturn only returns the error's code.
	actionReturn
	// actionCall calls a function of the program, and returns the code if that returns.
	actionCall
)

var _ = add(map[string]implementation{
	"Comm_create_errhandler": func(a *args) { a.newErrhandler(0, 1) },
	"Comm_set_errhandler":    (*args).setErrhandler,
	"Comm_get_errhandler":    (*args).getErrhandler,
	"Comm_call_errhandler":   func(a *args) { a.communicator(0); a.lib.handleError(a, userError(a.int(1))) },
	"Errhandler_free":        (*args).freeErrhandler,
	// MPI-1 names.
	"Errhandler_create": func(a *args) { a.newErrhandler(0, 1) },
	"Errhandler_set":    (*args).setErrhandler,
	"Errhandler_get":    (*args).getErrhandler,
})

// defineHandlers defines the predefined error handlers. Older ABIs lack MPI_ERRORS_ABORT.
func (l *Library) defineHandlers() {
	for name, does := range map[string]handlerAction{"ERRORS_ARE_FATAL": actionFatal, "ERRORS_ABORT": actionAbort,
		"ERRORS_RETURN": actionReturn} {
		v, ok := l.abi.constants[name]
		if !ok {
			continue
		}
		h := &errhandler{handle: l.abi.handle(kindErrhandler, v), action: does}
		l.errhandlers.define(h.handle, h)
		if does == actionFatal {
			l.defaultHandler = h
		}
	}
}

// newErrhandler makes an error handler of the function in one argument, and stores its handle in another. The handle
// counts as a use of the handler, so that MPI_Errhandler_free releases it.
func (a *args) newErrhandler(function, to int) {
	f := a.pointer(function)
	if f == nil {
		panic(failf(mpi.ErrArg, "the function is a null pointer"))
	}
	h, handle := newObject(a, a.lib.errhandlers, to)
	*h = errhandler{handle: handle, action: actionCall, function: f, refCount: 1}
}

func (a *args) errhandler(h uint64) *errhandler {
	if e := a.lib.errhandlers.get(h); e != nil {
		return e
	}
	panic(failf(mpi.ErrArg, "%#x is not an error handler", h))
}

// setErrhandler implements MPI_Comm_set_errhandler(comm, errhandler).
func (a *args) setErrhandler() {
	c := a.communicator(0)
	h := a.errhandler(a.handle(1, kindErrhandler))
	a.lib.retain(h)
	old := c.errhandler.Swap(h)
	a.lib.release(old)
}

func (a *args) getErrhandler() {
	a.shareErrhandler(1, a.communicator(0).handler())
}

// shareErrhandler gives the program a handle to an error handler, which the program must free.
func (a *args) shareErrhandler(i int, h *errhandler) {
	a.setHandle(i, h.handle)
	a.lib.retain(h)
}

// freeErrhandler implements MPI_Errhandler_free(errhandler). Objects that use the handler keep it.
func (a *args) freeErrhandler() {
	p := a.checkedPointer(0)
	h := a.errhandler(a.lib.handleAt(p, 0))
	a.lib.release(h)
	a.lib.setHandleAt(p, 0, a.lib.abi.null[kindErrhandler])
}

// retain adds a use of a handler.
func (l *Library) retain(h *errhandler) {
	l.errhandlers.mu.Lock()
	defer l.errhandlers.mu.Unlock()
	h.refCount++
}

// release records that an object no longer uses a handler. If this was the last use, release also removes a handler
// made by the program.
func (l *Library) release(h *errhandler) {
	if h == nil || h.action != actionCall {
		return
	}
	l.errhandlers.mu.Lock()
	h.refCount--
	last := h.refCount == 0
	l.errhandlers.mu.Unlock()
	if last {
		l.errhandlers.remove(h.handle)
	}
}
