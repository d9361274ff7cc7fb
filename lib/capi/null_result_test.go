package capi

import (
	"testing"
	"unsafe"
)

// live returns the number of objects of each kind that the program has.
func (r *rank) live() (n [8]int) {
	l := r.l
	for i, count := range []func() (used uint32, free int){
		func() (uint32, int) { return l.comms.next, len(l.comms.free) },
		func() (uint32, int) { return l.groups.next, len(l.groups.free) },
		func() (uint32, int) { return l.types.next, len(l.types.free) },
		func() (uint32, int) { return l.ops.next, len(l.ops.free) },
		func() (uint32, int) { return l.requests.next, len(l.requests.free) },
		func() (uint32, int) { return l.errhandlers.next, len(l.errhandlers.free) },
		func() (uint32, int) { return l.infos.next, len(l.infos.free) },
		func() (uint32, int) { return l.messages.next, len(l.messages.free) },
	} {
		used, free := count()
		n[i] = int(used) - free
	}
	return n
}

// TestNullResult checks that a call without a pointer for its result fails without side effects: no object is left, no
// message is in flight, and no receive is posted.
func TestNullResult(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
		function := unsafe.Pointer(new(byte))
		keyval, atKeyval := ints(0)
		r.ok("Comm_create_keyval", function, function, atKeyval, nil)
		r.ok("Comm_set_attr", "COMM_WORLD", int(keyval[0]), nil)
		buf, at := ints(1, 2)
		_, to := ints(0, 0)
		_, one := ints(1)
		group := newOut()
		r.ok("Comm_group", "COMM_WORLD", group.at())
		before := r.live()
		for _, call := range [][]any{
			{"Isend", at, 2, "INT", 0, 1, "COMM_WORLD", nil},
			{"Issend", at, 2, "INT", 0, 1, "COMM_WORLD", nil},
			{"Irecv", at, 2, "INT", 0, 1, "COMM_WORLD", nil},
			{"Send_init", at, 2, "INT", 0, 1, "COMM_WORLD", nil},
			{"Recv_init", at, 2, "INT", 0, 1, "COMM_WORLD", nil},
			{"Isendrecv", at, 2, "INT", 0, 1, to, 2, "INT", 0, 1, "COMM_WORLD", nil},
			{"Isendrecv_replace", at, 2, "INT", 0, 1, 0, 1, "COMM_WORLD", nil},
			{"Iallreduce", at, to, 1, "INT", "SUM", "COMM_WORLD", nil},
			{"Allreduce_init", at, to, 1, "INT", "SUM", "COMM_WORLD", "INFO_NULL", nil},
			{"Grequest_start", function, function, function, nil, nil},
			{"Comm_dup", "COMM_WORLD", nil},
			{"Comm_idup", "COMM_WORLD", nil, to},
			{"Comm_idup", "COMM_WORLD", newOut().at(), nil},
			{"Comm_split", "COMM_WORLD", 1, 1, nil},
			{"Comm_create", "COMM_WORLD", group.get(r), nil},
			{"Comm_create_group", "COMM_WORLD", group.get(r), 1, nil},
			{"Cart_create", "COMM_WORLD", 1, one, one, 0, nil},
			{"Comm_group", "COMM_WORLD", nil},
			{"Type_contiguous", 2, "INT", nil},
			{"Type_dup", "INT", nil},
			{"Op_create", function, 1, nil},
			{"Info_create", nil},
			{"Comm_create_errhandler", function, nil},
			{"Comm_get_errhandler", "COMM_WORLD", nil},
		} {
			name, _ := call[0].(string)
			r.ends(r.call(name, call[1:]...), "ERR_ARG", "null pointer")
			if after := r.live(); after != before {
				r.t.Errorf("%s, %s: there were %v, and are %v", r.abi, name, before, after)
			}
		}
		// No message was sent, so a probe finds none, and a receive posted now gets the next message.
		flag, atFlag := ints(1)
		r.ok("Iprobe", "ANY_SOURCE", "ANY_TAG", "COMM_WORLD", atFlag, "STATUS_IGNORE")
		if flag[0] != 0 {
			r.t.Errorf("%s: there is a message", r.abi)
		}
		request := newOut()
		buf[0] = 7
		r.ok("Isend", at, 2, "INT", 0, 1, "COMM_WORLD", request.at())

		// A failed matched probe leaves the message in place.
		r.ends(r.call("Mprobe", 0, 1, "COMM_WORLD", nil, "STATUS_IGNORE"), "ERR_ARG")
		r.ends(r.call("Improbe", 0, 1, "COMM_WORLD", atFlag, nil, "STATUS_IGNORE"), "ERR_ARG")
		r.ends(r.call("Improbe", 0, 1, "COMM_WORLD", nil, to, "STATUS_IGNORE"), "ERR_ARG")
		message := newOut()
		r.ok("Improbe", 0, 1, "COMM_WORLD", atFlag, message.at(), "STATUS_IGNORE")
		r.ends(r.call("Imrecv", to, 2, "INT", message.at(), nil), "ERR_ARG")
		r.ok("Mrecv", to, 2, "INT", message.at(), "STATUS_IGNORE")
		r.ok("Wait", request.at(), "STATUS_IGNORE")

		// A complete request remains if the call has no pointer to report it.
		list := r.requests(1)
		index, atIndex := ints(9)
		count, atCount := ints(9)
		for _, call := range [][]any{
			{"Waitsome", 1, list.at(0), atCount, nil, "STATUSES_IGNORE"},
			{"Waitsome", 1, list.at(0), nil, atIndex, "STATUSES_IGNORE"},
			{"Testsome", 1, list.at(0), atCount, nil, "STATUSES_IGNORE"},
			{"Waitany", 1, list.at(0), nil, "STATUS_IGNORE"},
			{"Testany", 1, list.at(0), atIndex, nil, "STATUS_IGNORE"},
			{"Testany", 1, list.at(0), nil, atFlag, "STATUS_IGNORE"},
			{"Test", list.at(0), nil, "STATUS_IGNORE"}, {"Testall", 1, list.at(0), nil, "STATUSES_IGNORE"},
		} {
			r.ok("Irecv", to, 1, "INT", "PROC_NULL", 1, "COMM_WORLD", list.at(0))
			name, _ := call[0].(string)
			r.ends(r.call(name, call[1:]...), "ERR_ARG", "null pointer")
			if list.null(0) {
				r.t.Errorf("%s, %s: the request is over", r.abi, name)
			}
			r.ok("Waitsome", 1, list.at(0), atCount, atIndex, "STATUSES_IGNORE")
			if count[0] != 1 || index[0] != 0 || !list.null(0) {
				r.t.Errorf("%s, %s: %d, %d", r.abi, name, count[0], index[0])
			}
		}
		r.ok("Group_free", group.at())
		r.ok("Comm_delete_attr", "COMM_WORLD", int(keyval[0]))
	})
}

// TestIdupRefused checks that Comm_idup fails on all ranks if one of them rejects it because its attributes cannot be
// copied.
func TestIdupRefused(t *testing.T) {
	onRanks(t, 2, func(r *rank) {
		r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
		me := r.rankIn("COMM_WORLD")
		function := unsafe.Pointer(new(byte))
		keyval, at := ints(0)
		r.ok("Comm_create_keyval", function, function, at, nil)
		r.ok("Comm_set_attr", "COMM_WORLD", int(keyval[0]), nil)
		before := r.live()
		if me == 1 {
			r.back.refuse = r.constant("ERR_OTHER")
		}
		twin, request := newOut(), newOut()
		code := r.call("Comm_idup", "COMM_WORLD", twin.at(), request.at())
		r.back.refuse = 0
		switch {
		case me == 1:
			r.ends(code, "ERR_OTHER")
			if !twin.null(r, kindComm) || r.live() != before {
				r.t.Errorf("%s: %#x, %v, and there were %v", r.abi, twin.get(r), r.live(), before)
			}
		case code == 0:
			code = r.call("Wait", request.at(), "STATUS_IGNORE")
			fallthrough
		default:
			r.ends(code, "ERR_OTHER", "rank 1 has abandoned")
		}
		r.ok("Barrier", "COMM_WORLD")
		r.ok("Comm_delete_attr", "COMM_WORLD", int(keyval[0]))
	})
}
