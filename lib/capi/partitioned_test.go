package capi

import (
	"testing"
	"unsafe"
)

// TestPartitioned marks partitions ready one by one, as a range and as a list, and checks that all arrive when all are
// ready.
func TestPartitioned(t *testing.T) {
	const parts, each = 6, 2
	onRanks(t, 2, func(r *rank) {
		r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
		me := r.rankIn("COMM_WORLD")
		buf, at := ints(make([]int32, parts*each)...)
		flag, atFlag := ints(9)
		request, plain := r.requests(1), r.requests(1)
		request0 := func() handle { return request.get(0) }
		if me == 0 {
			r.ok("Psend_init", at, parts, each, "INT", 1, 5, "COMM_WORLD", "INFO_NULL", request.at(0))
			for round := range int32(2) {
				r.ok("Start", request.at(0))
				r.ends(r.call("Start", request.at(0)), "ERR_REQUEST", "active")
				for i := range buf {
					buf[i] = 100*round + int32(i)
				}
				r.ok("Pready", 4, request0())
				r.ok("Pready_range", 1, 2, request0())
				r.ends(r.call("Pready", 2, request0()), "ERR_ARG", "ready already")
				r.ends(r.call("Pready", parts, request0()), "ERR_ARG")
				if r.ok("Test", request.at(0), atFlag, "STATUS_IGNORE"); flag[0] != 0 {
					r.t.Errorf("%s: sent before all is ready", r.abi)
				}
				r.ok("Barrier", "COMM_WORLD")
				r.ok("Barrier", "COMM_WORLD")
				_, list := ints(5, 0, 3)
				r.ok("Pready_list", 3, list, request0())
				r.ok("Wait", request.at(0), "STATUS_IGNORE")
			}
			r.ends(r.call("Pready", 0, request0()), "ERR_REQUEST", "not active")
			r.ends(r.call("Parrived", request0(), 0, atFlag), "ERR_REQUEST")
			r.ok("Send_init", at, 1, "INT", 1, 5, "COMM_WORLD", plain.at(0))
			r.ends(r.call("Pready", 0, plain.get(0)), "ERR_REQUEST", "not made by MPI_Psend_init")
			r.ends(r.call("Pready", 0, "REQUEST_NULL"), "ERR_REQUEST")
			if r.ok("Parrived", "REQUEST_NULL", 0, atFlag); flag[0] != 1 { // MPI 4.0, section 4.2.2
				r.t.Errorf("%s: Parrived of MPI_REQUEST_NULL gives %d", r.abi, flag[0])
			}
			r.ok("Request_free", plain.at(0))
		} else {
			r.ok("Precv_init", at, parts, each, "INT", 0, 5, "COMM_WORLD", "INFO_NULL", request.at(0))
			for round := range int32(2) {
				r.ok("Startall", 1, request.at(0))
				r.ok("Barrier", "COMM_WORLD")
				if r.ok("Parrived", request0(), 4, atFlag); flag[0] != 0 {
					r.t.Errorf("%s: arrived before all is ready", r.abi)
				}
				r.ok("Barrier", "COMM_WORLD")
				for part := range parts {
					for flag[0] = 0; flag[0] == 0; {
						r.ok("Parrived", request0(), part, atFlag)
					}
				}
				status := newStatuses(1)
				r.ok("Wait", request.at(0), status.at())
				count, atCount := ints(0)
				r.ok("Get_count", status.at(), "INT", atCount)
				if source, tag, _ := status.get(r, 0); source != 0 || tag != 5 || count[0] != parts*each ||
					buf[each] != 100*round+each {
					r.t.Errorf("%s: %d elements from %d with tag %d: %v", r.abi, count[0], source, tag, buf)
				}
				if r.ok("Parrived", request0(), 0, atFlag); flag[0] != 1 {
					r.t.Errorf("%s: not arrived after the end", r.abi)
				}
			}
			r.ends(r.call("Parrived", request0(), parts, atFlag), "ERR_ARG")
			r.ends(r.call("Parrived", request0(), 0, nil), "ERR_ARG", "null pointer")
			r.ends(r.call("Pready", 0, request0()), "ERR_REQUEST")
		}
		r.ok("Request_free", request.at(0))
		before := r.live()
		for _, peer := range []any{"ANY_SOURCE", 9} {
			r.ends(r.call("Precv_init", at, parts, each, "INT", peer, 5, "COMM_WORLD", "INFO_NULL", request.at(0)),
				"ERR_RANK")
		}
		r.ends(r.call("Precv_init", at, parts, each, "INT", 0, "ANY_TAG", "COMM_WORLD", "INFO_NULL", request.at(0)),
			"ERR_TAG")
		r.ends(r.call("Psend_init", at, -1, each, "INT", 0, 5, "COMM_WORLD", "INFO_NULL", request.at(0)), "ERR_ARG")
		r.ends(r.call("Psend_init", at, parts, -1, "INT", 0, 5, "COMM_WORLD", "INFO_NULL", request.at(0)), "ERR_COUNT")
		r.ends(r.call("Psend_init", at, parts, 1<<62, "INT", 0, 5, "COMM_WORLD", "INFO_NULL", request.at(0)),
			"ERR_COUNT")
		r.ends(r.call("Psend_init", at, parts, each, "INT", 0, 5, "COMM_WORLD", "INFO_NULL", unsafe.Pointer(nil)),
			"ERR_ARG")
		if after := r.live(); after != before {
			r.t.Errorf("%s: %v, and there were %v", r.abi, after, before)
		}
		r.ok("Psend_init", at, parts, each, "INT", "PROC_NULL", 5, "COMM_WORLD", "INFO_NULL", request.at(0))
		r.ok("Start", request.at(0))
		r.ok("Pready_range", 0, parts-1, request0())
		r.ok("Wait", request.at(0), "STATUS_IGNORE")
		r.ok("Request_free", request.at(0))
	})
}
