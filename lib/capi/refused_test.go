package capi

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// rankIn returns the rank in a communicator.
func (r *rank) rankIn(comm any) int {
	me, at := ints(0)
	r.ok("Comm_rank", comm, at)
	return int(me[0])
}

// textOf returns the text of an error.
func (r *rank) textOf(code int) string {
	text, _ := r.l.codes.text(code)
	return text
}

// ends checks that a call has failed with an error of the given class, and that its text contains the given parts.
func (r *rank) ends(code int, class string, says ...string) {
	r.t.Helper()
	number, _ := r.l.codes.classOfCode(code)
	text := r.textOf(code)
	if code == 0 || int64(number) != r.l.abi.constants[class] {
		r.t.Errorf("%s: class %d, want %s: %s", r.abi, number, class, text)
	}
	for _, s := range says {
		if !strings.Contains(text, s) {
			r.t.Errorf("%s: %q does not say %q", r.abi, text, s)
		}
	}
}

// TestRefused checks that a collective call that one rank rejects fails on the other ranks with an error of the same
// class that names the rank and the reason, whether they are already waiting in it or make it later. The next call must
// match on all ranks.
func TestRefused(t *testing.T) {
	const ranks, bad = 3, 1
	_, buf := ints(1, 2, 3)
	_, to := ints(0, 0, 0)
	_, three := ints(1, 1, 1)
	type arguments []any
	for _, test := range []struct {
		call        string
		right       arguments
		wrong       arguments
		class, says string
	}{
		{"Allreduce", arguments{buf, to, 1, "INT", "SUM", nil}, arguments{buf, to, -1, "INT", "SUM", nil}, "ERR_COUNT",
			"Allreduce, call 1 in communicator"},
		{"Allreduce", arguments{buf, to, 1, "DOUBLE", "SUM", nil}, arguments{buf, to, 1, "DOUBLE", "LAND", nil},
			"ERR_OP", "the operation is wrong there"},
		{"Bcast", arguments{buf, 3, "INT", 0, nil}, arguments{buf, 3, "DATATYPE_NULL", 0, nil}, "ERR_TYPE",
			"the datatype is wrong there"},
		{"Bcast", arguments{buf, 3, "INT", bad, nil}, arguments{buf, 3, "INT", 7, nil}, "ERR_ROOT",
			"the root is wrong there"},
		{"Allgather", arguments{buf, 1, "INT", to, 1, "INT", nil}, arguments{nil, 1, "INT", to, 1, "INT", nil},
			"ERR_BUFFER", "the buffer is wrong there"},
		{"Scan", arguments{buf, to, 1, "INT", "SUM", nil}, arguments{buf, to, 1, "INT", 0x12345, nil}, "ERR_OP",
			"the operation is wrong there"},
		{"Reduce_scatter", arguments{buf, to, three, "INT", "SUM", nil}, arguments{buf, to, nil, "INT", "SUM", nil},
			"ERR_ARG", "an argument is wrong there"},
		{"Alltoallv", arguments{buf, three, three, "INT", to, three, three, "INT", nil},
			arguments{buf, three, three, "INT", to, nil, three, "INT", nil}, "ERR_ARG", "an argument is wrong there"},
	} {
		for _, first := range []bool{true, false} {
			t.Run(fmt.Sprint(test.call, " ", test.class, " ", first), func(t *testing.T) {
				onRanks(t, ranks, func(r *rank) {
					r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
					twin := newOut()
					r.ok("Comm_dup", "COMM_WORLD", twin.at())
					comm := twin.get(r)
					me := r.rankIn(comm)
					says := test.says
					if !first { // the members have agreed, and now exchange messages immediately
						r.ok("Barrier", comm)
						says = strings.Replace(says, "call 1", "call 2", 1)
					}
					_, ownBuf := ints(1, 2, 3)
					_, ownTo := ints(0, 0, 0)
					with := func(list arguments, more ...any) []any {
						list = slices.Clone(list)
						for i := range list { // the ranks are in the same process
							switch list[i] {
							case buf:
								list[i] = ownBuf
							case to:
								list[i] = ownTo
							}
						}
						list[len(list)-1] = comm
						return append(list, more...)
					}
					// Some calls succeed on ranks that need no data from the others.
					alone := test.call == "Bcast" && test.class == "ERR_TYPE" || test.call == "Scan" && me == 0
					if me == bad {
						r.ends(r.call(test.call, with(test.wrong)...), test.class)
					} else if code := r.call(test.call, with(test.right)...); code != 0 || !alone {
						r.ends(code, test.class, "rank 1 has abandoned", says)
					}
					sum, atSum := ints(0)
					one, atOne := ints(int32(me))
					r.ok("Allreduce", atOne, atSum, 1, "INT", "SUM", comm)
					if sum[0] != 3 {
						r.t.Errorf("%v", sum)
					}
					// Nonblocking calls are rejected in the same way, even without a pointer for the request.
					request := newOut()
					name := "I" + strings.ToLower(test.call)
					if me == bad {
						r.ends(r.call(name, with(test.right, nil)...), "ERR_ARG")
						one[0] = 0
					} else {
						code := r.call(name, with(test.right, request.at())...)
						if code == 0 { // it fails immediately if the other rank was first
							code = r.call("Wait", request.at(), "STATUS_IGNORE")
						}
						if code != 0 || !alone {
							r.ends(code, "ERR_ARG", "rank 1 has abandoned", "an argument is wrong there")
						}
					}
					r.ok("Allreduce", atOne, atSum, 1, "INT", "SUM", comm)
					if sum[0] != 2 {
						r.t.Errorf("%v", sum)
					}
				})
			})
		}
	}
}

// TestMakingRefused checks that a call that makes a communicator fails on all ranks if one rejects it, whether it is
// the first member or not, and that the next call succeeds.
func TestMakingRefused(t *testing.T) {
	_, two := ints(2, 2)
	_, zero := ints(0, 0)
	_, index := ints(1, 2)
	_, edges := ints(1, 0)
	_, one := ints(1)
	for _, test := range []struct {
		call         string
		right, wrong []any
		class        string
	}{
		{"Comm_split", []any{0, 0}, []any{-5, 0}, "ERR_ARG"},
		{"Comm_split_type", []any{"COMM_TYPE_SHARED", 0, "INFO_NULL"}, []any{-12345, 0, "INFO_NULL"}, "ERR_ARG"},
		{"Comm_create", []any{"GROUP_EMPTY"}, []any{"GROUP_NULL"}, "ERR_GROUP"},
		{"Cart_create", []any{1, two, zero, 0}, []any{1, zero, zero, 0}, "ERR_DIMS"},
		{"Cart_create", []any{1, two, zero, 0}, []any{1, nil, zero, 0}, "ERR_ARG"},
		{"Graph_create", []any{2, index, edges, 0}, []any{-1, index, edges, 0}, "ERR_ARG"},
		{"Dist_graph_create_adjacent", []any{1, zero, "UNWEIGHTED", 1, zero, "UNWEIGHTED", "INFO_NULL", 0},
			[]any{1, two, "UNWEIGHTED", 1, two, "UNWEIGHTED", "INFO_NULL", 0}, "ERR_RANK"},
		{"Dist_graph_create", []any{1, zero, one, zero, "UNWEIGHTED", "INFO_NULL", 0},
			[]any{-1, zero, one, zero, "UNWEIGHTED", "INFO_NULL", 0}, "ERR_ARG"},
	} {
		for _, bad := range []int{0, 1} {
			t.Run(fmt.Sprint(test.call, " ", test.class, " ", bad), func(t *testing.T) {
				onRanks(t, 2, func(r *rank) {
					r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
					me := r.rankIn("COMM_WORLD")
					made := newOut()
					call := func(list []any) int {
						return r.call(test.call, append(append([]any{"COMM_WORLD"}, list...), made.at())...)
					}
					for range 2 {
						if me == bad {
							r.ends(call(test.wrong), test.class)
						} else {
							r.ends(call(test.right), test.class, fmt.Sprintf("rank %d", bad), " wrong there")
						}
						if code := call(test.right); code != 0 {
							r.t.Errorf("%s, %s: %s", r.abi, test.call, r.textOf(code))
						}
						if !made.null(r, kindComm) {
							r.ok("Comm_free", made.at())
						}
					}
				})
			})
		}
	}
}

// TestInvalidNumbers checks that errors contain the rank and tag passed by the program, or the name of the constant.
func TestInvalidNumbers(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
		_, at := ints(1)
		for _, test := range []struct {
			peer, tag   any
			class, says string
		}{
			{-7, 1, "ERR_RANK", "there is no rank -7:"},
			{"ANY_SOURCE", 1, "ERR_RANK", "there is no rank MPI_ANY_SOURCE:"},
			{"UNDEFINED", 1, "ERR_RANK", "there is no rank MPI_UNDEFINED:"},
			{"ROOT", 1, "ERR_RANK", "there is no rank "},
			{0, -5, "ERR_TAG", "tag -5,"},
			{0, "ANY_TAG", "ERR_TAG", "tag MPI_ANY_TAG,"},
		} {
			r.ends(r.call("Send", at, 1, "INT", test.peer, test.tag, "COMM_WORLD"), test.class, test.says)
		}
		r.ends(r.call("Recv", at, 1, "INT", -7, 1, "COMM_WORLD", "STATUS_IGNORE"), "ERR_RANK", "there is no rank -7:")
		r.ends(r.call("Bcast", at, 1, "INT", "UNDEFINED", "COMM_WORLD"), "ERR_ROOT", "there is no rank MPI_UNDEFINED:")
		r.ends(r.call("Bcast", at, 1, "INT", "ANY_SOURCE", "COMM_WORLD"), "ERR_ROOT",
			"there is no rank MPI_ANY_SOURCE:")
		r.ends(r.call("Reduce", at, nil, 1, "INT", "SUM", -9, "COMM_WORLD"), "ERR_ROOT", "there is no rank -9:")
	})
}
