package capi

import (
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// errhandler is an error handler.
type errhandler struct {
	handle   uint64
	does     does
	function unsafe.Pointer
	// uses is the number of objects that use the handler, plus one if it has a handle.
	uses int
}

type does uint8

const (
	ends does = iota
	aborts
	returns
	callsFunction
)

var _ = add(map[string]implementation{
	"Comm_create_errhandler": func(a *args) { a.newErrhandler(0, 1) },
	"Comm_set_errhandler":    (*args).setErrhandler,
	"Comm_get_errhandler":    (*args).getErrhandler,
	"Comm_call_errhandler":   func(a *args) { a.communicator(0); a.l.raise(a, userError(a.int(1))) },
	"Errhandler_free":        (*args).freeErrhandler,
	// MPI-1 names.
	"Errhandler_create": func(a *args) { a.newErrhandler(0, 1) },
	"Errhandler_set":    (*args).setErrhandler,
	"Errhandler_get":    (*args).getErrhandler,
})

func (l *Library) nameErrhandlers() {
	for name, does := range map[string]does{"ERRORS_ARE_FATAL": ends, "ERRORS_ABORT": aborts,
		"ERRORS_RETURN": returns} {
		v, ok := l.abi.constants[name]
		if !ok {
			continue
		}
		h := &errhandler{handle: l.abi.handle(kindErrhandler, v), does: does}
		l.errhandlers.name(h.handle, h)
		if does == ends {
			l.initial = h
		}
	}
}

func (a *args) newErrhandler(function, to int) {
	f := a.pointer(function)
	if f == nil {
		panic(failf(mpi.ErrArg, "the function is a null pointer"))
	}
	h, handle := give(a, a.l.errhandlers, to)
	*h = errhandler{handle: handle, does: callsFunction, function: f, uses: 1}
}

func (a *args) errhandler(h uint64) *errhandler {
	if e := a.l.errhandlers.get(h); e != nil {
		return e
	}
	panic(failf(mpi.ErrArg, "%#x is no error handler", h))
}

func (a *args) setErrhandler() {
	c := a.communicator(0)
	h := a.errhandler(a.handle(1, kindErrhandler))
	a.l.use(h)
	old := c.errhandler.Swap(h)
	a.l.release(old)
}

func (a *args) getErrhandler() {
	a.shareErrhandler(1, a.communicator(0).handler())
}

// shareErrhandler gives the program a handle to an error handler. The program has to free the handle.
func (a *args) shareErrhandler(i int, h *errhandler) {
	a.setHandle(i, h.handle)
	a.l.use(h)
}

func (a *args) freeErrhandler() {
	p := a.where(0)
	h := a.errhandler(a.l.handleAt(p, 0))
	a.l.release(h)
	a.l.setHandleAt(p, 0, a.l.abi.null[kindErrhandler])
}

// use adds a use of a handler.
func (l *Library) use(h *errhandler) {
	l.errhandlers.mu.Lock()
	defer l.errhandlers.mu.Unlock()
	h.uses++
}

// release removes a use of a handler. When the last use is removed, a handler made by the program is removed
// too.
func (l *Library) release(h *errhandler) {
	if h == nil || h.does != callsFunction {
		return
	}
	l.errhandlers.mu.Lock()
	h.uses--
	last := h.uses == 0
	l.errhandlers.mu.Unlock()
	if last {
		l.errhandlers.remove(h.handle)
	}
}
