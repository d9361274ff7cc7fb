package capi

import (
	"strings"
	"testing"
	"unsafe"
)

// TestSessions checks that a session starts the rank if nothing else has, and that the last user ends it.
func TestSessions(t *testing.T) {
	for name, init := range map[string]bool{"alone": false, "with Init": true} {
		t.Run(name, func(t *testing.T) {
			onProcesses(t, 3, func(r *rank) {
				if init {
					r.ok("Init", nil, nil)
				}
				s, second := newOut(), newOut()
				r.ok("Session_init", "INFO_NULL", "ERRORS_RETURN", s.at())
				r.ok("Session_init", "INFO_NULL", "ERRORS_RETURN", second.at())
				flag, atFlag := ints(7)
				if r.ok("Initialized", atFlag); (flag[0] != 0) != init {
					r.t.Errorf("initialized: %d", flag[0])
				}
				r.sessionSets(s.get(r))
				world, c := newOut(), newOut()
				r.ok("Group_from_session_pset", s.get(r), text("mpi://world"), world.at())
				r.ok("Comm_create_from_group", world.get(r), text("a name"), "INFO_NULL", "ERRORS_RETURN", c.at())
				_, atOne := ints(1)
				sum, atSum := ints(0)
				if r.ok("Allreduce", atOne, atSum, 1, "INT", "SUM", c.get(r)); sum[0] != 3 {
					r.t.Errorf("sum %d", sum[0])
				}
				if code := r.call("Send", atOne, 1, "INT", 9, 0,
					c.get(r)); code&0xff != int(r.l.abi.constants["ERR_RANK"]) {
					r.t.Errorf("a rank that is not there: %#x", code)
				}
				r.ok("Comm_free", c.at())
				if init {
					r.ok("Finalize")
				}
				r.ok("Session_finalize", s.at())
				if s.get(r) != handle(r.l.abi.null[kindSession]) {
					r.t.Errorf("%#x was finalized", s.get(r))
				}
				r.sessionSets(second.get(r))
				r.ok("Session_finalize", second.at())
				if r.ok("Finalized", atFlag); (flag[0] != 0) != init {
					r.t.Errorf("finalized: %d", flag[0])
				}
				if calls := r.back.taken(); len(calls) != 3 || calls[2] != "at exit" { // invalid handles, fatal twice
					r.t.Errorf("%v", calls)
				}
				// The rank can be used again, by sessions and by the first MPI_Init.
				for round := range 3 {
					r.ends(r.call("Comm_free", c.at()), "ERR_OTHER", "before MPI_Init")
					again := !init && round == 1
					if again {
						r.ok("Init", nil, nil)
					}
					r.ok("Session_init", "INFO_NULL", "ERRORS_RETURN", s.at())
					r.ok("Group_from_session_pset", s.get(r), text("mpi://WORLD"), world.at())
					r.ok("Comm_create_from_group", world.get(r), text("a name"), "INFO_NULL", "ERRORS_RETURN", c.at())
					if r.ok("Allreduce", atOne, atSum, 1, "INT", "SUM", c.get(r)); sum[0] != 3 {
						r.t.Errorf("sum %d", sum[0])
					}
					r.ok("Comm_free", c.at())
					r.ok("Session_finalize", s.at())
					if again {
						r.ok("Barrier", "COMM_WORLD")
						r.ok("Finalize")
					}
				}
				r.l.Exit()
				r.ends(r.call("Session_init", "INFO_NULL", "ERRORS_RETURN", s.at()), "ERR_UNSUPPORTED_OPERATION",
					"cannot be one again")
			})
		})
	}
}

// sessionSets checks the process sets.
func (r *rank) sessionSets(s handle) {
	r.t.Helper()
	n, atN := ints(0)
	r.ok("Session_get_num_psets", s, "INFO_NULL", atN)
	info, group := newOut(), newOut()
	name := make([]byte, 64)
	atName := unsafe.Pointer(unsafe.SliceData(name))
	flag, atFlag := ints(0)
	for i, want := range []struct{ name, size string }{{"mpi://WORLD", "3"}, {"mpi://SELF", "1"}} {
		clear(name)
		n, atN := ints(0)
		if r.ok("Session_get_nth_pset", s, "INFO_NULL", i, atN, nil); int(n[0]) != len(want.name)+1 {
			r.t.Errorf("length %d", n[0])
		}
		if r.ok("Session_get_nth_pset", s, "INFO_NULL", i, atN, atName); textAt(atName) != want.name {
			r.t.Errorf("set %d is %q", i, name)
		}
		r.ok("Session_get_pset_info", s, text(want.name), info.at())
		if r.ok("Info_get", info.get(r), text("mpi_size"), 63, atName, atFlag); flag[0] != 1 ||
			textAt(atName) != want.size {
			r.t.Errorf("size of %s: %q", want.name, name)
		}
		r.ok("Info_free", info.at())
		r.ok("Group_from_session_pset", s, text(want.name), group.at())
		if r.ok("Group_size", group.get(r), atN); itoa(int(n[0])) != want.size {
			r.t.Errorf("%s has %d ranks", want.name, n[0])
		}
		r.ok("Group_free", group.at())
	}
	r.ok("Session_get_info", s, info.at())
	if r.ok("Info_get", info.get(r), text("thread_level"), 63, atName, atFlag); !strings.HasPrefix(string(name),
		"MPI_THREAD_MULTIPLE\x00") {
		r.t.Errorf("threads: %q", name)
	}
	r.ok("Info_free", info.at())
	none := r.call("Group_from_session_pset", s, text("mpi://NONE"), group.at())
	number := r.call("Session_get_nth_pset", s, "INFO_NULL", 2, atN, atName)
	noSession := r.call("Session_get_num_psets", s+100, "INFO_NULL", atN)
	if n[0] != 2 || none == 0 || number == 0 || noSession == 0 {
		r.t.Errorf("%d sets, %d, %d, %d", n[0], none, number, noSession)
	}
}

// TestIntercommFromGroups uses two groups of different sizes. Only their leaders know the other group.
func TestIntercommFromGroups(t *testing.T) {
	onRanks(t, 3, func(r *rank) {
		me, atMe := ints(0)
		r.ok("Comm_rank", "COMM_WORLD", atMe)
		world, first, others := newOut(), newOut(), newOut()
		_, atZero := ints(0)
		r.ok("Comm_group", "COMM_WORLD", world.at())
		r.ok("Group_incl", world.get(r), 1, atZero, first.at())
		r.ok("Group_excl", world.get(r), 1, atZero, others.at())
		c := newOut()
		switch me[0] {
		case 0:
			r.ok("Intercomm_create_from_groups", first.get(r), 0, others.get(r), 1, text("a name"), "INFO_NULL",
				"ERRORS_RETURN", c.at())
		case 1:
			r.ok("Intercomm_create_from_groups", others.get(r), 1, "GROUP_NULL", 0, text("a name"), "INFO_NULL",
				"ERRORS_RETURN", c.at())
		case 2:
			r.ok("Intercomm_create_from_groups", others.get(r), 1, first.get(r), 0, text("a name"), "INFO_NULL",
				"ERRORS_RETURN", c.at())
		}
		size, atSize := ints(0)
		want := int32(1)
		if me[0] == 0 {
			want = 2
		}
		if r.ok("Comm_remote_size", c.get(r), atSize); size[0] != want {
			r.t.Errorf("rank %d: %d remote ranks", me[0], size[0])
		}
		got, atGot := ints(9)
		if me[0] == 0 {
			r.ok("Send", atMe, 1, "INT", 1, 0, c.get(r))
		} else if me[0] == 2 {
			if r.ok("Recv", atGot, 1, "INT", 0, 0, c.get(r), "STATUS_IGNORE"); got[0] != 0 {
				r.t.Errorf("received %v", got)
			}
		}
		if code := r.call("Send", atMe, 1, "INT", 9, 0, c.get(r)); code&0xff != int(r.l.abi.constants["ERR_RANK"]) {
			r.t.Errorf("a rank that is not there: %#x", code)
		}
		r.ok("Comm_free", c.at())
	})
}

// TestNoSession checks that MPI_Finalize ends a rank that had no session.
func TestNoSession(t *testing.T) {
	onProcesses(t, 1, func(r *rank) {
		r.ok("Init", nil, nil)
		r.ok("Finalize")
		s := newOut()
		r.ends(r.call("Session_init", "INFO_NULL", "ERRORS_RETURN", s.at()), "ERR_UNSUPPORTED_OPERATION",
			"MPI_Finalize ended the rank")
		r.called()
	})
}

// TestSessionErrors checks that errors of a session's calls go to its handler, which can be changed and is not
// inherited.
func TestSessionErrors(t *testing.T) {
	onProcesses(t, 1, func(r *rank) {
		function, other := unsafe.Pointer(new(byte)), unsafe.Pointer(new(byte))
		first, second, got, s, group := newOut(), newOut(), newOut(), newOut(), newOut()
		r.ok("Session_create_errhandler", function, first.at())
		r.ok("Session_create_errhandler", other, second.at())
		r.ok("Session_init", "INFO_NULL", first.get(r), s.at())
		raise := func(want ...string) {
			r.t.Helper()
			r.ends(r.call("Group_from_session_pset", s.get(r), text("mpi://NONE"), group.at()), "ERR_ARG",
				"no process set")
			r.called(want...)
		}
		class := func(name string) string { return "handle " + itoa(r.constant(name)) }
		raise(class("ERR_ARG"))
		r.ok("Session_get_errhandler", s.get(r), got.at())
		if got.get(r) != first.get(r) {
			r.t.Errorf("%s: handler %#x, want %#x", r.abi, got.get(r), first.get(r))
		}
		r.ok("Errhandler_free", got.at())
		r.ok("Errhandler_free", first.at()) // the session still uses it
		raise(class("ERR_ARG"))
		r.ok("Session_set_errhandler", s.get(r), second.get(r))
		raise(class("ERR_ARG"))
		r.ok("Session_call_errhandler", s.get(r), r.constant("ERR_TAG"))
		r.called(class("ERR_TAG"))
		r.ok("Session_set_errhandler", s.get(r), "ERRORS_RETURN")
		raise()
		r.ok("Session_get_errhandler", s.get(r), got.at())
		if got.get(r) != handle(r.l.abi.handle(kindErrhandler, r.l.abi.constants["ERRORS_RETURN"])) {
			r.t.Errorf("%s: handler %#x", r.abi, got.get(r))
		}
		r.ok("Session_set_errhandler", s.get(r), "ERRORS_ARE_FATAL")
		r.ends(r.call("Session_set_errhandler", s.get(r), s.get(r)), "ERR_ARG", "not an error handler")
		r.called("exit " + itoa(r.constant("ERR_ARG")))
		r.ok("Session_set_errhandler", s.get(r), second.get(r))
		r.ok("Errhandler_free", second.at())
		r.ends(r.call("Comm_create_from_group", 77, text("a name"), "INFO_NULL", "ERRORS_RETURN", got.at()),
			"ERR_GROUP")
		r.called()
		r.ok("Session_finalize", s.at())
		r.called("at exit")
		r.l.Exit()
	})
}
