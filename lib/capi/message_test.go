package capi

import (
	"slices"
	"testing"
)

// TestImprobe finds a message without waiting, and receives it with a request.
func TestImprobe(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		flag, atFlag := ints(9)
		message, request, receive := newOut(), newOut(), newOut()
		st := newStatuses(1)
		if r.ok("Improbe", "ANY_SOURCE", "ANY_TAG", "COMM_WORLD", atFlag, message.at(), st.at()); flag[0] != 0 {
			r.t.Errorf("found %v of none", flag)
		}
		_, atSent := ints(7, 8)
		got, atGot := ints(0, 0)
		count, atCount := ints(0)
		r.ok("Isend", atSent, 2, "INT", 0, 4, "COMM_WORLD", request.at())
		for flag[0] != 1 {
			r.ok("Improbe", "ANY_SOURCE", "ANY_TAG", "COMM_WORLD", atFlag, message.at(), st.at())
		}
		r.ok("Get_count", st.at(), "INT", atCount)
		if source, tag, _ := st.get(r, 0); source != 0 || tag != 4 || count[0] != 2 {
			r.t.Errorf("found %d elements from %d with tag %d", count[0], source, tag)
		}
		if r.ok("Iprobe", "ANY_SOURCE", "ANY_TAG", "COMM_WORLD", atFlag, "STATUS_IGNORE"); flag[0] != 0 {
			r.t.Errorf("a message that was matched is found again")
		}
		r.ok("Imrecv", atGot, 2, "INT", message.at(), receive.at())
		if !message.null(r, kindMessage) {
			r.t.Errorf("message %#x was received", message.get(r))
		}
		r.ok("Wait", receive.at(), st.at())
		if source, tag, _ := st.get(r, 0); source != 0 || tag != 4 || !slices.Equal(got, []int32{7, 8}) {
			r.t.Errorf("received %v from %d with tag %d", got, source, tag)
		}
		r.ok("Wait", request.at(), "STATUS_IGNORE")
	})
}

// TestMessageOfNoProcess checks that a matched probe for MPI_PROC_NULL returns a message without data.
func TestMessageOfNoProcess(t *testing.T) {
	for _, probe := range []string{"Mprobe", "Improbe"} {
		for _, receive := range []string{"Mrecv", "Imrecv"} {
			t.Run(probe+" "+receive, func(t *testing.T) {
				onRanks(t, 1, func(r *rank) {
					message, request := newOut(), newOut()
					st := newStatuses(1)
					flag, atFlag := ints(1)
					count, atCount := ints(9)
					empty := func(call string) {
						r.t.Helper()
						r.ok("Get_count", st.at(), "INT", atCount)
						if source, tag, _ := st.get(r, 0); source != r.constant("PROC_NULL") ||
							tag != r.constant("ANY_TAG") || count[0] != 0 || flag[0] != 1 {
							r.t.Errorf("%s: flag %d, %d elements from %d with tag %d", call, flag[0], count[0], source,
								tag)
						}
					}
					if probe == "Mprobe" {
						r.ok(probe, "PROC_NULL", 4, "COMM_WORLD", message.at(), st.at())
					} else {
						flag[0] = 9
						r.ok(probe, "PROC_NULL", 4, "COMM_WORLD", atFlag, message.at(), st.at())
					}
					empty(probe)
					if want := r.l.abi.handle(kindMessage,
						int64(r.constant("MESSAGE_NO_PROC"))); message.get(r) != handle(want) {
						r.t.Errorf("message %#x, want %#x", message.get(r), want)
					}
					clear(st.memory)
					got, atGot := ints(5)
					if receive == "Mrecv" {
						r.ok(receive, atGot, 1, "INT", message.at(), st.at())
					} else {
						r.ok(receive, atGot, 1, "INT", message.at(), request.at())
						r.ok("Wait", request.at(), st.at())
					}
					empty(receive)
					if got[0] != 5 || !message.null(r, kindMessage) {
						r.t.Errorf("received %v, message %#x", got, message.get(r))
					}
				})
			})
		}
	}
}

// TestMessageErrors checks that a message can still be received after a call with an invalid argument.
func TestMessageErrors(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
		message, request, receive := newOut(), newOut(), newOut()
		_, atSent := ints(7, 8)
		got, atGot := ints(0, 0)
		r.ok("Isend", atSent, 2, "INT", 0, 4, "COMM_WORLD", request.at())
		r.ok("Mprobe", 0, 4, "COMM_WORLD", message.at(), "STATUS_IGNORE")
		found := *message.memory
		for _, x := range []struct {
			class string
			list  []any
		}{
			{"ERR_COUNT", []any{atGot, -1, "INT"}},
			{"ERR_TYPE", []any{atGot, 2, "DATATYPE_NULL"}},
		} {
			r.fails(x.class, "Mrecv", append(slices.Clone(x.list), message.at(), "STATUS_IGNORE")...)
			r.fails(x.class, "Imrecv", append(slices.Clone(x.list), message.at(), receive.at())...)
			if *message.memory != found {
				r.t.Errorf("%s: the message is %#x, want %#x", x.class, *message.memory, found)
			}
		}
		r.fails("ERR_TRUNCATE", "Mrecv", atGot, 1, "INT", message.at(), "STATUS_IGNORE")
		*message.memory = found
		r.fails("ERR_REQUEST", "Mrecv", atGot, 2, "INT", message.at(), "STATUS_IGNORE") // it has already been received
		*message.memory = r.l.abi.null[kindMessage]
		r.fails("ERR_REQUEST", "Mrecv", atGot, 2, "INT", message.at(), "STATUS_IGNORE")
		r.fails("ERR_RANK", "Mprobe", 1, 4, "COMM_WORLD", message.at(), "STATUS_IGNORE")
		r.fails("ERR_TAG", "Mprobe", 0, -9, "COMM_WORLD", message.at(), "STATUS_IGNORE")
		r.ok("Wait", request.at(), "STATUS_IGNORE")
		if got[1] != 0 {
			r.t.Errorf("received %v into one element", got)
		}
	})
}
