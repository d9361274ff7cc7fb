package capi

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// byImplementation executes a call without the fast path for frequent calls.
func (l *Library) byImplementation(number int, list unsafe.Pointer) int {
	c := l.calls[number]
	c.frequent = infrequent
	return l.dispatch(&c, list)
}

func (r *rank) number(name string) int {
	return slices.IndexFunc(r.l.calls, func(c callEntry) bool { return c.name == name })
}

// TestFastMessages checks that the fast path for calls with one message has the same results as their implementations,
// for all kinds of arguments.
func TestFastMessages(t *testing.T) {
	_, buf := ints(1, 2, 3)
	usual := []any{buf, 1, "INT", 0, 7, "COMM_WORLD"}
	tests := []struct {
		name string
		list []any
	}{
		{"usual", usual},
		{"nothing", []any{nil, 0, "INT", 0, 7, "COMM_WORLD"}},
		{"no process", []any{buf, 1, "INT", "PROC_NULL", 7, "COMM_WORLD"}},
		{"any source and tag", []any{buf, 1, "INT", "ANY_SOURCE", "ANY_TAG", "COMM_WORLD"}},
		{"nothing without datatype", []any{buf, 0, "DATATYPE_NULL", 0, 7, "COMM_WORLD"}},
		{"no datatype", []any{buf, 1, "DATATYPE_NULL", 0, 7, "COMM_WORLD"}},
		{"invalid datatype", []any{buf, 1, 0x12345, 0, 7, "COMM_WORLD"}},
		{"in place", []any{"IN_PLACE", 1, "INT", 0, 7, "COMM_WORLD"}},
		{"address 0", []any{nil, 1, "INT", 0, 7, "COMM_WORLD"}},
		{"negative count", []any{buf, -1, "INT", 0, 7, "COMM_WORLD"}},
		{"rank", []any{buf, 1, "INT", 3, 7, "COMM_WORLD"}},
		{"negative rank", []any{buf, 1, "INT", -9, 7, "COMM_WORLD"}},
		{"negative tag", []any{buf, 1, "INT", 0, -9, "COMM_WORLD"}},
		{"no communicator", []any{buf, 1, "INT", 0, 7, "COMM_NULL"}},
		{"invalid communicator", []any{buf, 1, "INT", 0, 7, 0x12345}},
	}
	onRanks(t, 1, func(r *rank) {
		r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
		// outcome returns the result of a call as text. There is a message for it to receive.
		outcome := func(make func(number int, list unsafe.Pointer) int, name string, list []any, nowhere bool) string {
			st, request := newStatuses(1), newOut()
			r.l.setHandleAt(request.at(), 0, r.l.abi.null[kindRequest])
			var where any
			switch {
			case name == "Send" || nowhere:
			case name == "Recv":
				where = st.at()
			default:
				where = request.at()
			}
			r.ok("Isend", append(slices.Clone(usual), request.at())...)
			r.ok("Request_free", request.at())
			code := make(r.number(name), unsafe.Pointer(r.arguments(name, append(slices.Clone(list), where))))
			text := r.textOf(code)
			if !request.null(r, kindRequest) {
				r.call("Wait", request.at(), st.at())
			}
			source, tag, class := st.get(r, 0)
			// Some messages may be left.
			flag, atFlag := ints(1)
			for flag[0] != 0 {
				r.ok("Iprobe", "ANY_SOURCE", "ANY_TAG", "COMM_WORLD", atFlag, "STATUS_IGNORE")
				if flag[0] != 0 {
					r.ok("Recv", append(slices.Clone(usual), "STATUS_IGNORE")...)
				}
			}
			return fmt.Sprintf("%t %s source %d tag %d class %d, handlers %v", code == 0, text, source, tag, class,
				r.back.taken())
		}
		for _, test := range tests {
			for _, name := range []string{"Send", "Recv", "Isend", "Irecv", "Send_c", "Irecv_c"} {
				for _, nowhere := range []bool{false, true} {
					want, got := outcome(r.l.byImplementation, name, test.list, nowhere),
						outcome(r.l.Call, name, test.list, nowhere)
					if got != want {
						r.t.Errorf("%s: %s, %s:\n%s, by the implementation\n%s", r.abi, name, test.name, got, want)
					}
				}
			}
		}
	})
	onProcesses(t, 1, func(r *rank) {
		r.ends(r.call("Send", usual...), "ERR_OTHER", "MPI_Send was called before MPI_Init")
		r.ends(r.call("Wait", nil, nil), "ERR_OTHER", "MPI_Wait was called before MPI_Init")
		r.l.calls = nil
		r.ends(r.l.Call(3, nil), "ERR_INTERN", "there is no call 3")
	})
}

// TestFastCollectives checks that the fast path for collective calls, and other calls that many programs make, has the
// same results as their implementations, for all kinds of arguments.
func TestFastCollectives(t *testing.T) {
	// Arguments that differ from call to call have names.
	const sends, receives, status, result = "send buffer", "receive buffer", "status", "result"
	const on, root = "communicator", "root"
	calls := map[string][]any{
		"Barrier":   {on},
		"Bcast":     {sends, 2, "INT", root, on},
		"Reduce":    {sends, receives, 2, "INT", "SUM", root, on},
		"Allreduce": {sends, receives, 2, "INT", "SUM", on},
		"Allgather": {sends, 2, "INT", receives, 2, "INT", on},
		"Alltoall":  {sends, 2, "INT", receives, 2, "INT", on},
		"Comm_rank": {on, result},
		"Comm_size": {on, result},
		"Get_count": {status, "INT", result},
	}
	// instead contains other values for the usual arguments.
	instead := map[any][]any{
		sends:    {"IN_PLACE", nil, receives},
		receives: {"IN_PLACE", nil},
		status:   {"STATUS_IGNORE", nil},
		result:   {nil},
		2:        {0, -1, 1, 1 << 62},
		"INT":    {"DATATYPE_NULL", 0x12345, "BYTE", "FLOAT_INT", "pairs"},
		"SUM":    {"OP_NULL", 0x12345, "REPLACE", "BAND", "MAXLOC", "function"},
		on:       {"COMM_SELF", "COMM_NULL", 0x12345},
		root:     {1, 2, -9, "ROOT", "PROC_NULL", "ANY_SOURCE"},
	}
	onRanks(t, 2, func(r *rank) {
		r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
		r.ok("Comm_set_errhandler", "COMM_SELF", "ERRORS_RETURN")
		r.back.reduce = func(in, inout unsafe.Pointer, n int64) {
			for i := range n {
				*(*int32)(unsafe.Add(inout, 4*i)) += 3 * *(*int32)(unsafe.Add(in, 4*i))
			}
		}
		self, _ := ints(0)
		r.ok("Comm_rank", "COMM_WORLD", unsafe.Pointer(&self[0]))
		me := int(self[0])
		pairs, function, inter := newOut(), newOut(), newOut()
		r.ok("Type_contiguous", 2, "INT", pairs.at())
		r.ok("Type_commit", pairs.at())
		r.ok("Op_create", unsafe.Pointer(new(int64)), 1, function.at())
		r.ok("Intercomm_create", "COMM_SELF", 0, "COMM_WORLD", 1-me, 5, inter.at())
		outcome := func(make func(number int, list unsafe.Pointer) int, name string, list []any, comm any) string {
			from, atFrom := ints(10+int32(me), 20, 30, 40, 50, 60, 70, 80)
			to, atTo := ints(-1, -2, -3, -4, -5, -6, -7, -8)
			list = slices.Clone(list)
			for i, v := range list {
				switch v {
				case sends, status:
					list[i] = atFrom
				case receives, result:
					list[i] = atTo
				case on:
					list[i] = comm
				case "pairs":
					list[i] = pairs.get(r)
				case "function":
					list[i] = function.get(r)
				case root:
					if list[i] = 0; comm != "COMM_WORLD" && me == 0 {
						list[i] = "ROOT"
					}
				}
			}
			code := make(r.number(name), unsafe.Pointer(r.arguments(name, list)))
			return fmt.Sprintf("%t %s sent %v received %v, handlers %v", code == 0, r.textOf(code), from, to,
				r.back.taken())
		}
		compare := func(name, what string, list []any, comm any) {
			for range 2 { // the second time, the operation is cached
				want, got := outcome(r.l.byImplementation, name, list, comm), outcome(r.l.Call, name, list, comm)
				if strings.Contains(want+got, "has abandoned") {
					continue // the call is wrong on the other rank, which may or may not end it here in time
				}
				if got != want {
					r.t.Errorf("%s: %s%s:\n%s, by the implementation\n%s", r.abi, name, what, got, want)
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(calls)) {
			for _, form := range []string{name, name + "_c"} {
				if r.number(form) < 0 {
					continue // some calls have only one form
				}
				compare(form, "", calls[name], "COMM_WORLD")
				compare(form, " between groups", calls[name], inter.get(r))
				for i, usual := range calls[name] {
					for _, v := range instead[usual] {
						list := slices.Clone(calls[name])
						list[i] = v
						compare(form, fmt.Sprintf(", argument %d is %v", i+1, v), list, "COMM_WORLD")
					}
				}
			}
		}
		r.ok("Comm_free", inter.at())
		r.ok("Op_free", function.at())
		r.ok("Type_free", pairs.at())
	})
}
