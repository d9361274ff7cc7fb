package capi

import (
	"testing"
	"unsafe"
)

// requestArray is an array of requests in the memory layout of the ABI.
type requestArray struct {
	r      *rank
	n      int
	memory []uint64
}

// requests returns an array of n requests, all MPI_REQUEST_NULL.
func (r *rank) requests(n int) requestArray {
	l := requestArray{r, n, make([]uint64, n)}
	for i := range n {
		r.l.setHandleAt(l.at(0), i, r.l.abi.null[kindRequest])
	}
	return l
}

func (l requestArray) at(i int) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(unsafe.SliceData(l.memory)), i*l.r.l.abi.handleLen)
}

func (l requestArray) get(i int) handle { return handle(l.r.l.handleAt(l.at(0), i)) }

func (l requestArray) null(i int) bool { return l.get(i) == handle(l.r.l.abi.null[kindRequest]) }

// picked is the result of a call for one or some of several requests: the index and status of the first one. flag is 1
// if there is one.
type picked struct{ code, flag, index, source, tag, class, count int }

// pick calls MPI_Waitany, Testany, Waitsome or Testsome.
func (l requestArray) pick(call string) picked {
	r := l.r
	flag, atFlag := ints(1)
	index, atIndex := ints(9)
	n, atN := ints(9)
	many := make([]int32, l.n+1)
	st := newStatuses(l.n + 1)
	var p picked
	switch call {
	case "Waitany":
		p.code = r.call(call, l.n, l.at(0), atIndex, st.at())
	case "Testany":
		p.code = r.call(call, l.n, l.at(0), atIndex, atFlag, st.at())
	default:
		p.code = r.call(call, l.n, l.at(0), atN, unsafe.Pointer(unsafe.SliceData(many)), st.at())
		index[0] = many[0]
		if n[0] <= 0 {
			index[0], flag[0] = n[0], 0
		}
	}
	count, atCount := ints(0)
	r.ok("Get_count", st.at(), "INT", atCount)
	p.flag, p.index, p.count = int(flag[0]), int(index[0]), int(count[0])
	p.source, p.tag, p.class = st.get(r, 0)
	return p
}

// TestNoActiveRequest checks that arrays without an active request return empty statuses and MPI_UNDEFINED, without
// waiting.
func TestNoActiveRequest(t *testing.T) {
	for name, fill := range map[string]func(r *rank, l requestArray){
		"null": func(*rank, requestArray) {},
		"inactive": func(r *rank, l requestArray) {
			_, at := ints(0)
			r.ok("Send_init", at, 1, "INT", 0, 4, "COMM_WORLD", l.at(0))
			r.ok("Recv_init", at, 1, "INT", 0, 4, "COMM_WORLD", l.at(1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			onRanks(t, 1, func(r *rank) {
				l := r.requests(3)
				fill(r, l)
				before := l.get(0)
				undefined := r.constant("UNDEFINED")
				for _, call := range []string{"Waitany", "Testany", "Waitsome", "Testsome"} {
					some := call == "Waitsome" || call == "Testsome"
					got := l.pick(call)
					if got.code != 0 || got.index != undefined || got.count != 0 || some != (got.flag == 0) {
						r.t.Errorf("%s: %+v", call, got)
					}
					if !some && (got.source != r.constant("ANY_SOURCE") || got.tag != r.constant("ANY_TAG")) {
						r.t.Errorf("%s: status %+v", call, got)
					}
				}
				flag, atFlag := ints(9)
				count, atCount := ints(9)
				st := newStatuses(3)
				for call, list := range map[string][]any{
					"Wait":               {l.at(0), st.at()},
					"Test":               {l.at(0), atFlag, st.at()},
					"Waitall":            {3, l.at(0), st.at()},
					"Testall":            {3, l.at(0), atFlag, st.at()},
					"Request_get_status": {l.get(0), atFlag, st.at()},
				} {
					for i := range st.memory {
						st.memory[i] = 0x0505050505050505
					}
					flag[0] = 9
					r.ok(call, list...)
					n := 1
					if call == "Waitall" || call == "Testall" {
						n = 3
					}
					for i := range n {
						p := unsafe.Add(st.at(), uintptr(i)*r.l.abi.status.size)
						r.ok("Get_count", p, "INT", atCount)
						source, tag, class := st.get(r, i)
						if source != r.constant("ANY_SOURCE") || tag != r.constant("ANY_TAG") || count[0] != 0 ||
							class != 0 {
							r.t.Errorf("%s: status %d: source %d, tag %d, error %d, count %d", call, i, source, tag,
								class, count[0])
						}
					}
					if call != "Wait" && call != "Waitall" && flag[0] != 1 {
						r.t.Errorf("%s: flag %d", call, flag[0])
					}
				}
				if l.get(0) != before {
					r.t.Errorf("request %#x, was %#x", l.get(0), before)
				}
				for i := range 2 {
					if !l.null(i) {
						r.ok("Request_free", l.at(i))
					}
				}
				for call, list := range map[string][]any{"Waitall": {0, nil, nil}, "Testall": {0, nil, atFlag, nil}} {
					r.ok(call, list...)
				}
			})
		})
	}
}

// truncated starts a receive that is too short, between two requests without an error.
func (r *rank) truncated() (requestArray, func()) {
	_, atSent := ints(7, 8)
	_, atGot := ints(0, 0, 0)
	l, sends := r.requests(4), r.requests(3)
	for i, size := range []int{2, 1, 2} {
		r.ok("Irecv", atGot, size, "INT", 0, 10+i, "COMM_WORLD", l.at([]int{0, 2, 3}[i]))
		r.ok("Isend", atSent, 2, "INT", 0, 10+i, "COMM_WORLD", sends.at(i))
	}
	return l, func() { r.ok("Waitall", 3, sends.at(0), "STATUSES_IGNORE") }
}

// TestErrorsInStatuses checks that the error of one of several requests is in its status, and that the others succeed.
func TestErrorsInStatuses(t *testing.T) {
	for _, call := range []string{"Waitall", "Testall", "Waitsome", "Testsome"} {
		t.Run(call, func(t *testing.T) {
			onRanks(t, 1, func(r *rank) {
				r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
				l, sent := r.truncated()
				sent()
				var classes [4]int
				st := newStatuses(4)
				failed, ended := 0, 0
				for calls := 0; ended < 3; calls++ {
					flag, atFlag := ints(1)
					n, atN := ints(0)
					indices, atIndices := ints(0, 1, 2, 3)
					var code int
					switch call {
					case "Waitall":
						code, n[0] = r.call(call, 4, l.at(0), st.at()), 4
					case "Testall":
						if code = r.call(call, 4, l.at(0), atFlag, st.at()); flag[0] == 1 {
							n[0] = 4
						}
					default:
						code = r.call(call, 4, l.at(0), atN, atIndices, st.at())
					}
					if code != 0 {
						failed++
						if class, _ := r.l.codes.classOfCode(code); class != r.constant("ERR_IN_STATUS") {
							r.t.Errorf("class %d, want MPI_ERR_IN_STATUS", class)
						}
					}
					for i, index := range indices[:max(n[0], 0)] {
						_, _, classes[index] = st.get(r, i)
						ended++
					}
					if n[0] < 0 {
						break
					}
				}
				if truncate := r.constant("ERR_TRUNCATE"); classes != [4]int{0, 0, truncate, 0} || failed != 1 {
					r.t.Errorf("%d calls failed, errors %v", failed, classes)
				}
				for i := range 4 {
					if !l.null(i) {
						r.t.Errorf("request %d is %#x", i, l.get(i))
					}
				}
			})
		})
	}
}

// TestErrorOfOne checks that a call returns the error of the request that it selects.
func TestErrorOfOne(t *testing.T) {
	for _, call := range []string{"Waitany", "Testany"} {
		t.Run(call, func(t *testing.T) {
			onRanks(t, 1, func(r *rank) {
				r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
				l, sent := r.truncated()
				sent()
				for seen := 0; seen < 3; {
					got := l.pick(call)
					if got.flag == 0 {
						continue
					}
					seen++
					class, _ := r.l.codes.classOfCode(got.code)
					want := 0
					if got.index == 2 {
						want = r.constant("ERR_TRUNCATE")
					}
					if got.index < 0 || got.index > 3 || class != want || !l.null(got.index) || got.source != 0 {
						r.t.Errorf("picked %+v, class %d, want %d", got, class, want)
						return
					}
				}
			})
		})
	}
}

// TestPendingRequests checks that tests of pending requests change nothing, and cancels a receive.
func TestPendingRequests(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		_, at := ints(0)
		flag, atFlag := ints(9)
		l := r.requests(2)
		r.ok("Irecv", at, 1, "INT", 0, 4, "COMM_WORLD", l.at(1))
		before := l.get(1)
		if got := l.pick("Testany"); got.flag != 0 || got.index != r.constant("UNDEFINED") || got.code != 0 {
			r.t.Errorf("Testany: %+v", got)
		}
		if got := l.pick("Testsome"); got.flag != 0 || got.index != 0 || got.code != 0 {
			r.t.Errorf("Testsome: %+v", got)
		}
		st := newStatuses(2)
		for call, list := range map[string][]any{
			"Test":               {l.at(1), atFlag, st.at()},
			"Testall":            {2, l.at(0), atFlag, st.at()},
			"Request_get_status": {l.get(1), atFlag, st.at()},
		} {
			flag[0] = 9
			if r.ok(call, list...); flag[0] != 0 {
				r.t.Errorf("%s: flag %d", call, flag[0])
			}
		}
		for _, word := range st.memory {
			if word != 0 {
				r.t.Errorf("the statuses were written: %v", st.memory)
				break
			}
		}
		if l.get(1) != before {
			r.t.Errorf("request %#x, was %#x", l.get(1), before)
		}
		r.ok("Cancel", l.at(1))
		r.ok("Waitall", 2, l.at(0), st.at())
		if r.ok("Test_cancelled", unsafe.Add(st.at(), r.l.abi.status.size), atFlag); flag[0] != 1 || !l.null(1) {
			r.t.Errorf("cancelled: %d, request %#x", flag[0], l.get(1))
		}
	})
}

// TestRequestErrors checks invalid handles and counts.
func TestRequestErrors(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
		_, at := ints(0, 0)
		l := r.requests(2)
		st := newStatuses(2)
		r.fails("ERR_REQUEST", "Request_free", l.at(0))
		r.fails("ERR_REQUEST", "Cancel", l.at(0))
		r.fails("ERR_REQUEST", "Start", l.at(0))
		r.l.setHandleAt(l.at(0), 1, 77)
		for _, n := range []int{2, -1} {
			class := map[int]string{2: "ERR_REQUEST", -1: "ERR_COUNT"}[n]
			r.fails(class, "Waitall", n, l.at(0), st.at())
			r.fails(class, "Testall", n, l.at(0), at, st.at())
			r.fails(class, "Waitany", n, l.at(0), at, st.at())
			r.fails(class, "Testany", n, l.at(0), at, at, st.at())
			r.fails(class, "Waitsome", n, l.at(0), at, at, st.at())
			r.fails(class, "Testsome", n, l.at(0), at, at, st.at())
		}
		r.fails("ERR_REQUEST", "Wait", l.at(1), st.at())
		r.fails("ERR_REQUEST", "Test", l.at(1), at, st.at())
		r.fails("ERR_REQUEST", "Request_get_status", 77, at, st.at())
		r.fails("ERR_ARG", "Waitall", 2, nil, st.at())
	})
}

// TestSetElements checks that MPI_Get_elements and MPI_Get_count return the number passed to MPI_Status_set_elements.
func TestSetElements(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		_, atLengths := ints(1, 2)
		displs := new([2]int64)
		displs[1] = 8
		types := r.requests(2) // also used for handles of datatypes
		for i, name := range []string{"DOUBLE", "INT"} {
			r.l.setHandleAt(types.at(0), i, r.l.abi.handle(kindDatatype, r.l.abi.constants[name]))
		}
		mixed := newOut()
		r.ok("Type_create_struct", 2, atLengths, unsafe.Pointer(displs), types.at(0), mixed.at())
		undefined := r.constant("UNDEFINED")
		for _, x := range []struct {
			of              any
			elements, count int
		}{
			{"INT", 0, 0}, {"INT", 1, 1}, {"INT", 3, 3}, {"CHAR", 5, 5},
			{mixed.get(r), 0, 0}, {mixed.get(r), 1, undefined}, {mixed.get(r), 2, undefined}, {mixed.get(r), 3, 1},
			{mixed.get(r), 5, undefined}, {mixed.get(r), 6, 2},
		} {
			st := newStatuses(1)
			elements, atElements := ints(9)
			count, atCount := ints(9)
			r.ok("Status_set_elements", st.at(), x.of, x.elements)
			r.ok("Get_elements", st.at(), x.of, atElements)
			r.ok("Get_count", st.at(), x.of, atCount)
			if int(elements[0]) != x.elements || int(count[0]) != x.count {
				r.t.Errorf("%v: %d elements, count %d, want %d and %d", x.of, elements[0], count[0], x.elements,
					x.count)
			}
		}
		r.ok("Type_free", mixed.at())
	})
}

// TestStatusFields checks that fields set in a status are where programs read them, and that the other fields are
// unchanged.
func TestStatusFields(t *testing.T) {
	onProcesses(t, 1, func(r *rank) { // also without a rank
		st := newStatuses(1)
		r.l.setBytes(st.at(), 12, false)
		r.ok("Status_set_cancelled", st.at(), 1)
		fields := []string{"source", "tag", "error"}
		for i, field := range fields {
			r.ok("Status_set_"+field, st.at(), 5+i)
		}
		source, tag, _ := st.get(r, 0)
		if source != 5 || tag != 6 {
			r.t.Errorf("%s: source %d, tag %d", r.abi, source, tag)
		}
		for i, field := range fields {
			value, at := ints(0)
			r.ok("Status_get_"+field, st.at(), at)
			if int(value[0]) != 5+i {
				r.t.Errorf("%s: %s is %d", r.abi, field, value[0])
			}
			for _, call := range []string{"Status_get_", "Status_set_"} {
				r.fails("ERR_ARG", call+field, nil, at)
				r.fails("ERR_ARG", call+field, "STATUS_IGNORE", at)
			}
			r.fails("ERR_ARG", "Status_get_"+field, st.at(), nil)
		}
		if s := r.l.statusAt(st.at()); s.Bytes != 12 || !s.Cancelled {
			r.t.Errorf("%s: %d bytes, cancelled %t", r.abi, s.Bytes, s.Cancelled)
		}
	})
}

// TestStatusOfSend checks that the completion of a send leaves source, tag and count in the status as its last receive
// wrote them, because programs for MPICH read them after a loop of MPI_Waitany. The status of an inactive request is
// empty.
func TestStatusOfSend(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		_, at := ints(7)
		_, to := ints(0)
		flag, atFlag := ints(9)
		_, atIndex := ints(9)
		n, atCount := ints(0)
		for call, list := range map[string]func(l requestArray, st statuses) []any{
			"Wait":     func(l requestArray, st statuses) []any { return []any{l.at(0), st.at()} },
			"Test":     func(l requestArray, st statuses) []any { return []any{l.at(0), atFlag, st.at()} },
			"Waitall":  func(l requestArray, st statuses) []any { return []any{1, l.at(0), st.at()} },
			"Testall":  func(l requestArray, st statuses) []any { return []any{1, l.at(0), atFlag, st.at()} },
			"Waitany":  func(l requestArray, st statuses) []any { return []any{1, l.at(0), atIndex, st.at()} },
			"Waitsome": func(l requestArray, st statuses) []any { return []any{1, l.at(0), atCount, atIndex, st.at()} },
		} {
			for _, start := range []string{"Isend", "Send_init"} {
				l, st := r.requests(1), newStatuses(1)
				r.ok(start, at, 1, "INT", 0, 3, "COMM_WORLD", l.at(0))
				if start == "Send_init" {
					r.ok("Start", l.at(0))
				}
				r.ok("Recv", to, 1, "INT", "ANY_SOURCE", "ANY_TAG", "COMM_WORLD", st.at())
				r.ok(call, list(l, st)...)
				r.ok("Get_count", st.at(), "INT", atCount)
				if source, tag, _ := st.get(r, 0); source != 0 || tag != 3 || n[0] != 1 {
					r.t.Errorf("%s, %s of %s: source %d, tag %d, %d words", r.abi, call, start, source, tag, n[0])
				}
				r.ok("Test_cancelled", st.at(), atFlag)
				if flag[0] != 0 {
					r.t.Errorf("%s, %s of %s: cancelled", r.abi, call, start)
				}
				if start == "Isend" {
					continue
				}
				r.ok("Wait", l.at(0), st.at())
				if source, tag, _ := st.get(r, 0); source != r.constant("ANY_SOURCE") || tag != r.constant("ANY_TAG") {
					r.t.Errorf("%s: inactive: source %d, tag %d", r.abi, source, tag)
				}
				r.ok("Request_free", l.at(0))
			}
		}
	})
}
