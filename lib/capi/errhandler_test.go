package capi

import (
	"strings"
	"testing"
	"unsafe"
)

// fault makes a call fail on a communicator with an error of class ERR_RANK.
func (r *rank) fault(c any) int {
	_, at := ints(1)
	return r.call("Send", at, 1, "INT", 99, 0, c)
}

// handlerOf returns the error handler of a communicator, and frees this handle.
func (r *rank) handlerOf(c any) handle {
	r.t.Helper()
	got := newOut()
	r.ok("Comm_get_errhandler", c, got.at())
	h := got.get(r)
	r.ok("Errhandler_free", got.at())
	return h
}

func (r *rank) predefined(k kind, name string) handle {
	return handle(r.l.abi.handle(k, r.l.abi.constants[name]))
}

// TestErrhandlers checks that an error handler is called with the handle of the communicator and the code that the call
// returns. It is called as long as an object uses it, and new communicators inherit it from their parent.
func TestErrhandlers(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		type call struct {
			function unsafe.Pointer
			object   handle
			code     int
		}
		var last call
		n := 0
		r.back.handle = func(f unsafe.Pointer, object uint64, code int) {
			last = call{f, handle(object), code}
			n++
		}
		handled := func(what string, f unsafe.Pointer, c handle, code int) {
			r.t.Helper()
			if n != 1 || last != (call{f, c, code}) || code == 0 {
				r.t.Errorf("%s, %s: called %d times, with %+v, want %v of %#x with %d", r.abi, what, n, last, f, c,
					code)
			}
			n = 0
		}
		world, self := r.predefined(kindComm, "COMM_WORLD"), r.predefined(kindComm, "COMM_SELF")
		for _, c := range []handle{world, self} {
			if h := r.handlerOf(c); h != r.predefined(kindErrhandler, "ERRORS_ARE_FATAL") {
				r.t.Errorf("%s: the handler of %#x is %#x", r.abi, c, h)
			}
		}
		function, other := unsafe.Pointer(new(int)), unsafe.Pointer(new(int))
		first, second := newOut(), newOut()
		r.ok("Comm_create_errhandler", function, first.at())
		r.ok("Errhandler_create", other, second.at()) // the name in MPI-1
		r.ok("Comm_set_errhandler", "COMM_WORLD", first.get(r))
		if h := r.handlerOf(world); h != first.get(r) {
			r.t.Errorf("%s: %#x, want %#x", r.abi, h, first.get(r))
		}
		handled("a call", function, world, r.fault(world))
		// A handler that the program has freed remains while communicators use it.
		freed := first.get(r)
		r.ok("Errhandler_free", first.at())
		if !first.null(r, kindErrhandler) {
			r.t.Errorf("%s: %#x was freed", r.abi, first.get(r))
		}
		dup, split, idup, request := newOut(), newOut(), newOut(), newOut()
		r.ok("Comm_dup", "COMM_WORLD", dup.at())
		r.ok("Comm_split", "COMM_WORLD", 0, 0, split.at())
		r.ok("Comm_idup", "COMM_WORLD", idup.at(), request.at())
		r.ok("Wait", request.at(), "STATUS_IGNORE")
		r.ok("Comm_set_errhandler", "COMM_WORLD", second.get(r))
		for _, c := range []out{dup, split, idup} {
			if h := r.handlerOf(c.get(r)); h != freed {
				r.t.Errorf("%s: inherited %#x, want %#x", r.abi, h, freed)
			}
			handled("inherited", function, c.get(r), r.fault(c.get(r)))
		}
		handled("another one", other, world, r.fault(world))
		// The error of a request goes to the handler of its communicator.
		_, at := ints(1, 2)
		_, small := ints(0)
		recv := newOut()
		r.ok("Irecv", small, 1, "INT", 0, 3, dup.get(r), recv.at())
		r.ok("Send", at, 2, "INT", 0, 3, dup.get(r))
		code := r.call("Wait", recv.at(), "STATUS_IGNORE")
		r.ends(code, "ERR_TRUNCATE")
		handled("a request", function, dup.get(r), code)
		// An error without an object goes to the handler of COMM_WORLD.
		handled("a datatype", other, world, r.call("Type_contiguous", -1, "INT", request.at()))
		handled("no communicator", other, world, r.fault("COMM_NULL"))

		// MPI_Comm_call_errhandler calls the handler with the given code, and succeeds.
		own, atOwn := ints(0)
		r.ok("Add_error_class", atOwn)
		r.ok("Comm_call_errhandler", dup.get(r), int(own[0]))
		handled("call", function, dup.get(r), int(own[0]))
		r.ok("Comm_call_errhandler", "COMM_WORLD", r.constant("ERR_TAG"))
		handled("call", other, world, r.constant("ERR_TAG"))

		// MPI_ERRORS_RETURN calls no function.
		r.ok("Comm_set_errhandler", dup.get(r), "ERRORS_RETURN")
		r.ends(r.fault(dup.get(r)), "ERR_RANK")
		r.ok("Comm_call_errhandler", dup.get(r), r.constant("ERR_TAG"))
		handled("the others have theirs", function, split.get(r), r.fault(split.get(r)))
		r.ok("Comm_free", split.at())
		if r.l.errhandlers.get(uint64(freed)) == nil {
			r.t.Errorf("%s: the handler is gone, and a communicator has it", r.abi)
		}
		r.ok("Comm_free", idup.at())
		if r.l.errhandlers.get(uint64(freed)) != nil {
			r.t.Errorf("%s: the handler has no user, and is there", r.abi)
		}
		handled("a freed handler", other, world, r.call("Comm_set_errhandler", world, freed))
		handled("no handler", other, world,
			r.call("Comm_set_errhandler", world, r.predefined(kindErrhandler, "ERRHANDLER_NULL")))
		handled("no function", other, world, r.call("Comm_create_errhandler", nil, first.at()))
		r.ok("Comm_free", dup.at())
		r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
		r.ok("Errhandler_free", second.at())
		r.called()
	})
}

// TestFatalHandlers checks that MPI_ERRORS_ARE_FATAL and MPI_ERRORS_ABORT exit with the class of the error, after a
// line with the call and the reason.
func TestFatalHandlers(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		for _, name := range []string{"ERRORS_ARE_FATAL", "ERRORS_ABORT"} {
			if _, ok := r.l.abi.constants[name]; !ok {
				r.t.Errorf("%s has no %s", r.abi, name)
				continue
			}
			twin := newOut()
			r.ok("Comm_dup", "COMM_WORLD", twin.at())
			r.ok("Comm_set_errhandler", twin.get(r), name)
			if h := r.handlerOf(twin.get(r)); h != r.predefined(kindErrhandler, name) {
				r.t.Errorf("%s: %#x is %s", r.abi, h, name)
			}
			r.text.Reset()
			r.fault(twin.get(r))
			r.called("exit " + itoa(r.constant("ERR_RANK")))
			if text := r.text.String(); !strings.Contains(text, "rank 0 of 1: MPI_Send failed") ||
				!strings.Contains(text, "there is no rank 99") {
				r.t.Errorf("%s, %s: %q", r.abi, name, text)
			}
			r.call("Comm_call_errhandler", twin.get(r), r.constant("ERR_TAG"))
			r.called("exit " + itoa(r.constant("ERR_TAG")))
			r.ok("Comm_free", twin.at())
		}
		// File operations return their errors, regardless of the communicator's handler.
		file := newOut()
		if code := r.call("File_open", "COMM_WORLD", nil, 0, "INFO_NULL", file.at()); code == 0 {
			r.t.Errorf("%s: MPI_File_open succeeds", r.abi)
		}
		r.called()
	})
}
