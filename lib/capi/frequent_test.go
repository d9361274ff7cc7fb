package capi

import (
	"fmt"
	"slices"
	"testing"
	"unsafe"
)

// TestMessageAsCall: Message does what Call does with the same arguments, whatever they are.
func TestMessageAsCall(t *testing.T) {
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
		// outcome is what a call has done, with a message for it to receive.
		outcome := func(make func(number int, list *[maxArgs]uint64) int, name string, list []any, nowhere bool) string {
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
			number := slices.IndexFunc(r.l.calls, func(c numbered) bool { return c.name == name })
			code := make(number, r.arguments(name, append(slices.Clone(list), where)))
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
			return fmt.Sprintf("%t %s source %d tag %d class %d, handlers %v", code == 0, text, source, tag, class, r.back.taken())
		}
		call := func(number int, list *[maxArgs]uint64) int { return r.l.Call(number, unsafe.Pointer(list)) }
		for _, test := range tests {
			for _, name := range []string{"Send", "Recv", "Isend", "Irecv", "Send_c", "Irecv_c"} {
				for _, nowhere := range []bool{false, true} {
					want, got := outcome(call, name, test.list, nowhere), outcome(r.l.callAsC, name, test.list, nowhere)
					if got != want {
						r.t.Errorf("%s: %s, %s:\n%s, by Call\n%s", r.abi, name, test.name, got, want)
					}
				}
			}
		}
	})
	onProcesses(t, 1, func(r *rank) {
		r.ends(r.call("Send", usual...), "ERR_OTHER", "MPI_Send was called before MPI_Init")
		r.l.calls = nil
		r.ends(r.l.Message(3, nil, 0, 0, 0, 0, 0, nil), "ERR_INTERN", "there is no call 3")
	})
}
