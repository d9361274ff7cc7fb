package capi

import (
	"testing"
	"unsafe"
)

// general starts a generalized request.
func (r *rank) general() out {
	r.t.Helper()
	o := newOut()
	r.ok("Grequest_start", 31, 32, 33, nil, o.at())
	return o
}

// elements returns a query function that sets the number of elements in the status, and returns a code.
func (r *rank) elements(n, cancelled, code int) func(unsafe.Pointer) int {
	return func(status unsafe.Pointer) int {
		r.ok("Status_set_elements", status, "INT", n)
		r.ok("Status_set_cancelled", status, cancelled)
		return code
	}
}

// TestGeneralRequest checks that the functions of a generalized request are called at the right times.
func TestGeneralRequest(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		r.back.query = r.elements(3, 0, 0)
		st := newStatuses(1)
		flag, atFlag := ints(9)
		count, atCount := ints(0)
		o := r.general()
		if r.ok("Test", o.at(), atFlag, st.at()); flag[0] != 0 {
			r.t.Errorf("complete before its end: %d", flag[0])
		}
		if r.ok("Request_get_status", o.get(r), atFlag, st.at()); flag[0] != 0 {
			r.t.Errorf("complete before its end: %d", flag[0])
		}
		r.called()
		r.ok("Grequest_complete", o.get(r))
		r.called()
		r.ok("Request_get_status", o.get(r), atFlag, st.at())
		r.called("query")
		if r.ok("Get_count", st.at(), "INT", atCount); flag[0] != 1 || count[0] != 3 {
			r.t.Errorf("flag %d, count %d", flag[0], count[0])
		}
		clear(st.memory)
		r.ok("Wait", o.at(), st.at())
		r.called("query", "free")
		if r.ok("Get_count", st.at(), "INT", atCount); count[0] != 3 || !o.null(r, kindRequest) {
			r.t.Errorf("count %d, request %#x", count[0], o.get(r))
		}
		o = r.general()
		go r.ok("Grequest_complete", o.get(r))
		r.ok("Wait", o.at(), "STATUS_IGNORE")
		r.called("query", "free")
	})
}

// TestGeneralCancel checks that the cancel function learns whether the request is complete.
func TestGeneralCancel(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		r.back.query = r.elements(0, 1, 0)
		st := newStatuses(1)
		flag, atFlag := ints(9)
		o := r.general()
		r.ok("Cancel", o.at())
		r.called("cancel false")
		r.ok("Grequest_complete", o.get(r))
		r.ok("Cancel", o.at())
		r.called("cancel true")
		r.ok("Test", o.at(), atFlag, st.at())
		r.called("query", "free")
		if r.ok("Test_cancelled", st.at(), atFlag); flag[0] != 1 {
			r.t.Errorf("cancelled: %d", flag[0])
		}
	})
}

// TestGeneralFree checks that the free function is called by MPI_Request_free or MPI_Grequest_complete, whichever is
// called last.
func TestGeneralFree(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
		first := r.general()
		kept := first.get(r)
		r.ok("Request_free", first.at())
		r.called()
		r.ok("Grequest_complete", kept)
		r.called("free")
		second := r.general()
		r.ok("Grequest_complete", second.get(r))
		r.called()
		r.ok("Request_free", second.at())
		r.called("free")
		if !first.null(r, kindRequest) || !second.null(r, kindRequest) {
			r.t.Errorf("requests %#x and %#x were freed", first.get(r), second.get(r))
		}
		r.fails("ERR_REQUEST", "Grequest_complete", kept)
		r.fails("ERR_REQUEST", "Grequest_complete", "REQUEST_NULL")
	})
}

// TestGeneralErrors checks that the request fails with the errors of its query and free functions.
func TestGeneralErrors(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
		other := r.constant("ERR_OTHER")
		for name, x := range map[string]struct{ query, free int }{"query": {other, 0}, "free": {0, other}} {
			r.back.query, r.back.refuse = r.elements(1, 0, x.query), x.free
			o := r.general()
			r.ok("Grequest_complete", o.get(r))
			if code := r.call("Wait", o.at(), "STATUS_IGNORE"); code != other || !o.null(r, kindRequest) {
				r.t.Errorf("%s: error %d, want %d, request %#x", name, code, other, o.get(r))
			}
			r.called("query", "free")
			list := r.requests(3)
			for _, i := range []int{0, 2} {
				r.ok("Grequest_start", 31, 32, 33, nil, list.at(i))
				r.ok("Grequest_complete", list.get(i))
			}
			st := newStatuses(3)
			r.fails("ERR_IN_STATUS", "Waitall", 3, list.at(0), st.at())
			r.called("query", "free", "query", "free")
			for i, want := range []int{other, 0, other} {
				if _, _, class := st.get(r, i); class != want || !list.null(i) {
					r.t.Errorf("%s: status %d has error %d, want %d, request %#x", name, i, class, want, list.get(i))
				}
			}
		}
	})
}

// TestGeneralAmongOthers checks that the complete request is returned with its status, and the other one is unchanged.
func TestGeneralAmongOthers(t *testing.T) {
	for _, call := range []string{"Waitany", "Testany", "Waitsome", "Testsome"} {
		t.Run(call, func(t *testing.T) {
			onRanks(t, 1, func(r *rank) {
				r.back.query = r.elements(2, 0, 0)
				list := r.requests(3) // the second request is MPI_REQUEST_NULL
				r.ok("Grequest_start", 31, 32, 33, nil, list.at(0))
				r.ok("Grequest_start", 31, 32, 33, nil, list.at(2))
				if call[0] == 'T' {
					if got := list.pick(call); got.flag != 0 || got.code != 0 {
						r.t.Errorf("picked %+v of none", got)
					}
				}
				r.called()
				r.ok("Grequest_complete", list.get(2))
				if got := list.pick(call); got.index != 2 || got.flag != 1 || got.count != 2 || got.code != 0 {
					r.t.Errorf("picked %+v", got)
				}
				r.called("query", "free")
				if !list.null(2) || list.null(0) {
					r.t.Errorf("requests %#x and %#x", list.get(0), list.get(2))
				}
				go r.ok("Grequest_complete", list.get(0))
				got := list.pick(call)
				for call[0] == 'T' && got.flag == 0 {
					got = list.pick(call)
				}
				if got.index != 0 || got.count != 2 {
					r.t.Errorf("picked %+v", got)
				}
				r.called("query", "free")
			})
		})
	}
}
