package capi

import (
	"testing"
	"unsafe"
)

// TestSendBuffers checks that buffered sends use the buffer of their communicator, otherwise of its session, otherwise
// of the rank (MPI 4.1, section 3.6).
func TestSendBuffers(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		for _, c := range []string{"COMM_WORLD", "COMM_SELF"} {
			r.ok("Comm_set_errhandler", c, "ERRORS_RETURN")
		}
		const n, bytes = 1 << 18, 4 << 18 // too long for an eager send
		sent, at := ints(make([]int32, n)...)
		in, to := ints(make([]int32, n)...)
		sent[n-1] = 3
		send := func(comm any) int { return r.call("Bsend", at, n, "INT", 0, 7, comm) }
		lost := false // the receive of a message that was not sent would never return
		sends := func(comm any) {
			r.t.Helper()
			if code := send(comm); code != 0 {
				r.t.Errorf("%s, %v: %s", r.abi, comm, r.textOf(code))
				lost = true
			}
		}
		receive := func(comm any) {
			r.t.Helper()
			if lost {
				return
			}
			clear(in)
			if r.ok("Recv", to, n, "INT", 0, 7, comm, "STATUS_IGNORE"); in[n-1] != sent[n-1] {
				r.t.Errorf("%s: received %d", r.abi, in[n-1])
			}
		}
		session, group, comm, dup := newOut(), newOut(), newOut(), newOut()
		name := func(s string) unsafe.Pointer { return unsafe.Pointer(unsafe.StringData(s + "\x00")) }
		r.ok("Session_init", "INFO_NULL", "ERRORS_RETURN", session.at())
		r.ok("Group_from_session_pset", session.get(r), name("mpi://SELF"), group.at())
		part := newOut()
		_, first := ints(0)
		r.ok("Group_incl", group.get(r), 1, first, part.at())
		r.ok("Comm_create_from_group", part.get(r), name("a"), "INFO_NULL", "ERRORS_RETURN", comm.at())
		r.ok("Comm_dup", comm.get(r), dup.at())
		memory := make([]int32, 64)
		attach := []any{unsafe.Pointer(&memory[0]), bytes}
		back, size := newOut(), make([]int64, 1)
		detached := func(call string, want int64, object ...any) {
			r.t.Helper()
			r.ok(call, append(object, back.at(), unsafe.Pointer(&size[0]))...)
			if size[0] != want {
				r.t.Errorf("%s, %s: a buffer of %d bytes, want %d", r.abi, call, size[0], want)
			}
		}

		r.ends(send("COMM_WORLD"), "ERR_BUFFER", "no buffer is attached")
		r.ok("Comm_attach_buffer", append([]any{"COMM_WORLD"}, attach...)...)
		r.ok("Session_attach_buffer", append([]any{session.get(r)}, attach...)...)
		r.ends(r.call("Comm_attach_buffer", append([]any{"COMM_WORLD"}, attach...)...), "ERR_BUFFER",
			"attached already")
		r.ends(send("COMM_SELF"), "ERR_BUFFER", "no buffer is attached")
		for _, c := range []any{"COMM_WORLD", comm.get(r), dup.get(r)} {
			sends(c)
			if c != dup.get(r) {
				receive(c)
			}
		}
		r.ends(send(comm.get(r)), "ERR_BUFFER", "1048576 of the buffer's 1048576 are in use") // by the message in dup
		r.ok("Comm_attach_buffer", comm.get(r), attach[0], bytes)
		sends(comm.get(r))
		request, status := r.requests(1), newStatuses(1)
		flag, atFlag := ints(9)
		r.ok("Comm_iflush_buffer", comm.get(r), request.at(0))
		if r.ok("Test", request.at(0), atFlag, "STATUS_IGNORE"); flag[0] != 0 {
			r.t.Errorf("%s: flushed before the message is received", r.abi)
		}
		receive(comm.get(r))
		receive(dup.get(r))
		r.ok("Wait", request.at(0), status.at())
		r.ok("Session_flush_buffer", session.get(r))
		r.ok("Session_iflush_buffer", session.get(r), request.at(0))
		r.ok("Wait", request.at(0), status.at())
		detached("Comm_detach_buffer_c", bytes, "COMM_WORLD")
		detached("Comm_detach_buffer_c", bytes, comm.get(r))
		detached("Session_detach_buffer_c", bytes, session.get(r))
		r.ends(r.call("Comm_detach_buffer_c", comm.get(r), back.at(), unsafe.Pointer(&size[0])), "ERR_BUFFER",
			"no buffer is attached")

		r.ok("Buffer_attach", attach...)
		r.ok("Buffer_flush")
		r.ok("Buffer_iflush", request.at(0))
		r.ok("Wait", request.at(0), status.at())
		detached("Buffer_detach_c", bytes)
		if r.abi == "standard" {
			automatic := r.l.abi.constants["BUFFER_AUTOMATIC"]
			r.ok("Buffer_attach", *(*unsafe.Pointer)(unsafe.Pointer(&automatic)), 0)
			for range 3 {
				sends("COMM_SELF")
			}
			for range 3 {
				receive("COMM_SELF")
			}
			detached("Buffer_detach_c", 0)
			if back.get(r) != handle(r.constant("BUFFER_AUTOMATIC")) {
				r.t.Errorf("the buffer is %#x", back.get(r))
			}
		}
		for _, o := range []out{comm, dup} {
			r.ok("Comm_free", o.at())
		}
		r.ok("Group_free", group.at())
		r.ok("Session_finalize", session.at())
	})
}

// TestMessageTypes checks that the datatype of a message must be committed, and that MPI_DATATYPE_NULL is allowed
// without elements.
func TestMessageTypes(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
		_, at := ints(1, 2, 3)
		in, to := ints(0, 0, 0)
		_, zero := ints(0)
		_, one := ints(1)
		made := newOut()
		r.ok("Type_contiguous", 3, "INT", made.at())
		of, derived := made.get(r), newHandles(r, "INT")
		r.l.setHandleAt(derived, 0, uint64(of))
		for _, call := range [][]any{
			{"Send", at, 1, of, 0, 7, "COMM_WORLD"},
			{"Bcast", at, 1, of, 0, "COMM_WORLD"},
			{"Allgather", at, 1, of, to, 1, of, "COMM_WORLD"},
			{"Alltoallv", at, one, zero, of, to, one, zero, of, "COMM_WORLD"},
			{"Alltoallw", at, one, zero, derived, to, one, zero, derived, "COMM_WORLD"},
		} {
			r.ends(r.call(call[0].(string), call[1:]...), "ERR_TYPE", "call MPI_Type_commit")
		}
		r.ok("Type_commit", made.at())
		r.ok("Allgather", at, 1, of, to, 1, of, "COMM_WORLD")
		null := newHandles(r, "DATATYPE_NULL")
		r.ok("Alltoallw", at, zero, zero, null, to, zero, zero, null, "COMM_WORLD")
		r.ok("Alltoallv", at, zero, zero, "DATATYPE_NULL", to, zero, zero, "DATATYPE_NULL", "COMM_WORLD")
		r.ends(r.call("Alltoallw", at, one, zero, null, to, zero, zero, null, "COMM_WORLD"), "ERR_TYPE",
			"MPI_DATATYPE_NULL")
		r.ends(r.call("Alltoallv", at, one, zero, "DATATYPE_NULL", to, zero, zero, "INT", "COMM_WORLD"), "ERR_TYPE",
			"MPI_DATATYPE_NULL")
		if in[2] != 3 {
			r.t.Errorf("%s: received %v", r.abi, in)
		}
		r.ok("Type_free", made.at())
	})
}
