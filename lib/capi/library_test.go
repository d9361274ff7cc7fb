package capi

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/node"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// rank is a rank that calls MPI as from C.
type rank struct {
	t *testing.T
	l *Library
	// abi is the name of the ABI. back records the calls of the program's functions.
	abi  string
	back *recorder
	text *strings.Builder
}

// recorder has the functions of the test program, with numbers as their addresses.
type recorder struct {
	mu     sync.Mutex
	calls  []string
	reduce func(in, inout unsafe.Pointer, n int64)
	refuse int  // returned by Delete, Copy and GeneralFree
	drop   bool // Copy omits the attribute
	// handle, if not nil, is called by error handlers.
	handle func(f unsafe.Pointer, object uint64, code int)
	// query, if not nil, is the query function of generalized requests.
	query func(status unsafe.Pointer) int
}

func (r *recorder) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, fmt.Sprintf(format, args...))
}

func (r *recorder) Reduce(_, in, inout unsafe.Pointer, n int64, _ bool, _ uint64) {
	r.reduce(in, inout, n)
}

func (r *recorder) Copy(f unsafe.Pointer, _ uint64, _ int, _, value unsafe.Pointer) (unsafe.Pointer, bool, int) {
	r.note("copy %d", uintptr(f))
	return value, !r.drop, r.refuse
}

func (r *recorder) Delete(f unsafe.Pointer, _ uint64, _ int, value, _ unsafe.Pointer) int {
	r.note("delete %d value %d", uintptr(f), uintptr(value))
	return r.refuse
}

func (r *recorder) Handle(f unsafe.Pointer, object uint64, code int) {
	if r.handle != nil {
		r.handle(f, object, code)
		return
	}
	r.note("handle %d", code&0xff)
}

func (r *recorder) GeneralQuery(_, _, status unsafe.Pointer) int {
	r.note("query")
	if r.query == nil {
		return 0
	}
	return r.query(status)
}
func (r *recorder) GeneralFree(_, _ unsafe.Pointer) int { r.note("free"); return r.refuse }
func (r *recorder) GeneralCancel(_, _ unsafe.Pointer, done bool) int {
	r.note("cancel %v", done)
	return 0
}
func (r *recorder) Allocate(bytes int64) unsafe.Pointer {
	return unsafe.Pointer(unsafe.SliceData(make([]byte, bytes)))
}
func (r *recorder) LongDouble(_, _ string, _, _ unsafe.Pointer, _ int64) bool { return false }
func (r *recorder) Flush()                                                    {}
func (r *recorder) HandlersOnStack()                                          {}
func (r *recorder) AtExit()                                                   { r.note("at exit") }
func (r *recorder) Free(unsafe.Pointer)                                       {}

// taken returns the calls recorded since it was last called.
func (r *recorder) taken() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.calls
	r.calls = nil
	return list
}

// onRanks runs a program on n ranks in this process, with each ABI, from MPI_Init to MPI_Finalize.
func onRanks(t *testing.T, n int, program func(r *rank)) {
	t.Helper()
	onProcesses(t, n, func(r *rank) {
		r.ok("Init", nil, nil)
		program(r)
		r.ok("Finalize")
	})
}

// onProcesses runs a program on n processes that can become ranks.
func onProcesses(t *testing.T, n int, program func(r *rank)) {
	t.Helper()
	for which, name := range map[ABI]string{MPICH: "MPICH", Standard: "standard"} {
		t.Run(name, func(t *testing.T) {
			devices, err := node.StartLocal(n, protocol.Extended)
			if err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			for _, d := range devices {
				r := &rank{t: t, abi: name, back: new(recorder), text: new(strings.Builder)}
				r.l = New(which, r.back)
				r.l.openRank = func(*Library) (mpe.Device, error) { return d, nil }
				r.l.errors = io.MultiWriter(r.text)
				r.l.exit = func(code int) { r.back.note("exit %d", code) }
				all.Go(func() { program(r) })
			}
			all.Wait()
		})
	}
}

// call makes a call. Pointers must point to memory allocated by new or make.
func (r *rank) call(name string, list ...any) int {
	r.t.Helper()
	number := -1
	for i := range r.l.calls {
		if r.l.calls[i].name == name {
			number = i
		}
	}
	return r.l.Call(number, unsafe.Pointer(r.arguments(name, list)))
}

// arguments returns the arguments of a call.
func (r *rank) arguments(name string, list []any) *[maxArgs]uint64 {
	r.t.Helper()
	slots := new([maxArgs]uint64)
	for i, v := range list {
		switch v := v.(type) {
		case nil:
		case int:
			slots[i] = uint64(v)
		case handle:
			slots[i] = uint64(v)
		case string: // a constant of the ABI
			c, ok := r.l.abi.constants[v]
			if !ok {
				r.t.Fatalf("%s has no constant %s", r.abi, v)
			}
			slots[i] = uint64(c)
		case unsafe.Pointer:
			*(*unsafe.Pointer)(unsafe.Pointer(&slots[i])) = v
		default:
			r.t.Fatalf("argument %d of %s is a %T", i, name, v)
		}
	}
	return slots
}

// ok makes a call that must succeed.
func (r *rank) ok(name string, list ...any) {
	r.t.Helper()
	if code := r.call(name, list...); code != 0 {
		text, _ := r.l.codes.text(code)
		r.t.Errorf("%s: %s", name, text)
	}
}

// fails makes a call that must fail with an error of the given class.
func (r *rank) fails(class, name string, list ...any) {
	r.t.Helper()
	code := r.call(name, list...)
	if number, _ := r.l.codes.classOfCode(code); int64(number) != r.l.abi.constants[class] {
		text, _ := r.l.codes.text(code)
		r.t.Errorf("%s: class %d, want %s: %s", name, number, class, text)
	}
}

// called checks which functions of the program were called since it was last called.
func (r *rank) called(want ...string) {
	r.t.Helper()
	if got := r.back.taken(); !slices.Equal(got, want) {
		r.t.Errorf("%s: called %v, want %v", r.abi, got, want)
	}
}

// null reports whether a handle is null.
func (o out) null(r *rank, k kind) bool { return o.get(r) == handle(r.l.abi.null[k]) }

// statuses is an array of statuses for either ABI.
type statuses struct{ memory []uint64 }

func newStatuses(n int) statuses { return statuses{make([]uint64, 4*n)} }

func (s statuses) at() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s.memory)) }

// get returns the source, tag and error class in a status.
func (s statuses) get(r *rank, i int) (source, tag, class int) {
	layout := &r.l.abi.status
	p := unsafe.Add(s.at(), uintptr(i)*layout.size)
	class, _ = r.l.codes.classOfCode(int(*(*int32)(unsafe.Add(p, layout.err))))
	return int(*(*int32)(unsafe.Add(p, layout.source))), int(*(*int32)(unsafe.Add(p, layout.tag))), class
}

// constant returns the value of a constant in the ABI.
func (r *rank) constant(name string) int { return int(r.l.abi.constants[name]) }

// handle is a handle that a call returned.
type handle uint64

// out is the memory for a handle that a call returns.
type out struct{ memory *uint64 }

func newOut() out { return out{new(uint64)} }

func (o out) at() unsafe.Pointer { return unsafe.Pointer(o.memory) }

func (o out) get(r *rank) handle {
	if r.l.abi.handleLen == 4 {
		return handle(uint32(*o.memory))
	}
	return handle(*o.memory)
}

func ints(list ...int32) ([]int32, unsafe.Pointer) {
	list = append([]int32(nil), list...)
	return list, unsafe.Pointer(unsafe.SliceData(list))
}

// TestCalls exchanges messages and makes collective calls, with the handles and constants of both ABIs.
func TestCalls(t *testing.T) {
	onRanks(t, 3, func(r *rank) {
		me, atMe := ints(0)
		size, atSize := ints(0)
		r.ok("Comm_rank", "COMM_WORLD", atMe)
		r.ok("Comm_size", "COMM_WORLD", atSize)
		parent := newOut()
		if r.ok("Comm_get_parent", parent.at()); parent.get(r) != handle(r.l.abi.null[kindComm]) {
			r.t.Errorf("the parent is %#x", parent.get(r))
		}
		if size[0] != 3 {
			r.t.Errorf("size %d", size[0])
		}
		next, previous := int(me[0]+1)%3, int(me[0]+2)%3
		_, atSent := ints(me[0], 7)
		got, atGot := ints(0, 0)
		status := unsafe.Pointer(new([8]int32))
		request := newOut()
		r.ok("Isend", atSent, 2, "INT", next, 5, "COMM_WORLD", request.at())
		r.ok("Recv", atGot, 2, "INT", "ANY_SOURCE", "ANY_TAG", "COMM_WORLD", status)
		r.ok("Wait", request.at(), "STATUS_IGNORE")
		if got[0] != int32(previous) || got[1] != 7 || request.get(r) != handle(r.l.abi.null[kindRequest]) {
			r.t.Errorf("%d has received %v, request %#x", me[0], got, request.get(r))
		}
		count, atCount := ints(0)
		r.ok("Get_count", status, "INT", atCount)
		if at := r.l.abi.status; count[0] != 2 || *(*int32)(unsafe.Add(status, at.source)) != int32(previous) ||
			*(*int32)(unsafe.Add(status, at.tag)) != 5 {
			r.t.Errorf("status %v, count %d", *(*[8]int32)(status), count[0])
		}
		sum, atSum := ints(0, 0)
		r.ok("Allreduce", atSent, atSum, 2, "INT", "SUM", "COMM_WORLD")
		if sum[0] != 3 || sum[1] != 21 {
			r.t.Errorf("sum %v", sum)
		}
		all, atAll := ints(0, 0, 0)
		all[me[0]] = me[0] + 10
		r.ok("Allgather", "IN_PLACE", 0, "DATATYPE_NULL", atAll, 1, "INT", "COMM_WORLD")
		if all[0] != 10 || all[1] != 11 || all[2] != 12 {
			r.t.Errorf("all %v", all)
		}
		split := newOut()
		r.ok("Comm_split", "COMM_WORLD", int(me[0])%2, -int(me[0]), split.at())
		r.ok("Comm_rank", split.get(r), atMe)
		r.ok("Comm_size", split.get(r), atSize)
		if want := 1 - me[0]/2; next != 2 && (size[0] != 2 || me[0] > 1) {
			r.t.Errorf("split %d of %d, want %d", me[0], size[0], want)
		}
		r.ok("Comm_free", split.at())
		if split.get(r) != handle(r.l.abi.null[kindComm]) {
			r.t.Errorf("%#x was freed", split.get(r))
		}
	})
}

// TestErrors checks that calls return errors with the ABI's classes and texts that name the mistake.
func TestErrors(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
		_, buf := ints(1)
		class, atClass := ints(0)
		for _, x := range []struct {
			class, says string
			code        int
		}{
			{"ERR_RANK", "there is no rank 5", r.call("Send", buf, 1, "INT", 5, 0, "COMM_WORLD")},
			{"ERR_TAG", "tag", r.call("Send", buf, 1, "INT", 0, -7, "COMM_WORLD")},
			{"ERR_COUNT", "the count is -1", r.call("Send", buf, -1, "INT", 0, 0, "COMM_WORLD")},
			{"ERR_TYPE", "MPI_DATATYPE_NULL", r.call("Send", buf, 1, "DATATYPE_NULL", 0, 0, "COMM_WORLD")},
			{"ERR_COMM", "MPI_COMM_NULL", r.call("Send", buf, 1, "INT", 0, 0, "COMM_NULL")},
			{"ERR_COMM", "the communicator handle 0x7654321 is invalid", r.call("Send", buf, 1, "INT", 0, 0, 0x7654321)},
			{"ERR_OP", "LAND is not defined", r.call("Allreduce", "IN_PLACE", buf, 1, "DOUBLE", "LAND", "COMM_WORLD")},
			{"ERR_ARG", "null pointer", r.call("Comm_size", "COMM_WORLD", nil)},
			{"ERR_BUFFER", "address 0", r.call("Send", nil, 1, "INT", 0, 0, "COMM_WORLD")},
			{"ERR_BUFFER", "argument 1 of MPI_Recv must not be MPI_IN_PLACE",
				r.call("Recv", "IN_PLACE", 1, "INT", 0, 0, "COMM_WORLD", "STATUS_IGNORE")},
			{"ERR_BUFFER", "argument 2 of MPI_Reduce_local", r.call("Reduce_local", buf, "IN_PLACE", 1, "INT", "SUM")},
			{"ERR_BUFFER", "both buffers of MPI_Reduce_local are at one address",
				r.call("Reduce_local", buf, buf, 1, "INT", "SUM")},
			{"ERR_BUFFER", "both buffers of MPI_Allreduce are at one address",
				r.call("Allreduce", buf, buf, 1, "INT", "SUM", "COMM_WORLD")},
			{"ERR_BUFFER", "argument 2 of MPI_Scan", r.call("Scan", buf, "IN_PLACE", 1, "INT", "SUM", "COMM_WORLD")},
			{"ERR_BUFFER", "argument 5 of MPI_Alltoallv",
				r.call("Alltoallv", buf, buf, buf, "INT", "IN_PLACE", buf, buf, "INT", "COMM_WORLD")},
			{"ERR_OP", "MPI_MAX is not defined for MPI_BYTE",
				r.call("Allreduce", "IN_PLACE", buf, 1, "BYTE", "MAX", "COMM_WORLD")},
			{"ERR_UNSUPPORTED_OPERATION", "MPI_Win_create is not supported",
				r.call("Win_create", buf, 4, 1, "INFO_NULL", "COMM_WORLD", buf)},
		} {
			text := make([]byte, 512)
			r.ok("Error_class", x.code, atClass)
			r.ok("Error_string", x.code, unsafe.Pointer(unsafe.SliceData(text)), atClass)
			r.ok("Error_class", x.code, atClass)
			want, ok := r.l.abi.constants[x.class]
			if !ok {
				want = r.l.abi.constants["ERR_OTHER"]
			}
			if int64(class[0]) != want || !strings.Contains(string(text), x.says) {
				r.t.Errorf("class %d, %q, want %s %d, %q", class[0], strings.TrimRight(string(text), "\x00"), x.class,
					want, x.says)
			}
		}
		if len(r.back.calls) > 0 {
			r.t.Errorf("%v", r.back.calls)
		}
		r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_ARE_FATAL")
		r.call("Send", buf, 1, "INT", 5, 0, "COMM_WORLD")
		if text := r.text.String(); !strings.Contains(text, "rank 0 of 1: MPI_Send failed") ||
			!strings.Contains(text, "there is no rank 5") || len(r.back.calls) != 1 {
			r.t.Errorf("%q, %v", text, r.back.calls)
		}
	})
}

// TestErrorClasses checks that each error class in the standard is its own code with its name as the text, even if no
// call returns it.
func TestErrorClasses(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		class, atClass := ints(0)
		for name, number := range r.l.abi.constants {
			if !strings.HasPrefix(name, "ERR_") || name == "ERR_LASTCODE" {
				continue
			}
			text := make([]byte, 512)
			r.ok("Error_string", int(number), unsafe.Pointer(unsafe.SliceData(text)), atClass)
			r.ok("Error_class", int(number), atClass)
			if got := strings.TrimRight(string(text), "\x00"); int64(class[0]) != number || got != "MPI_"+name {
				r.t.Errorf("%s: class %d, %q", name, class[0], got)
			}
		}
	})
}

// TestRemovedErrors checks that texts, codes and classes that a program has added can be removed, in this order.
func TestRemovedErrors(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
		class, atClass := ints(0)
		code, atCode := ints(0)
		r.ok("Add_error_class", atClass)
		r.ok("Add_error_code", int(class[0]), atCode)
		own, ownClass := int(code[0]), int(class[0])
		text := append([]byte("a text"), 0)
		r.ok("Add_error_string", own, unsafe.Pointer(unsafe.SliceData(text)))
		r.fails("ERR_OTHER", "Remove_error_class", ownClass)
		r.fails("ERR_ARG", "Remove_error_class", own)
		r.fails("ERR_ARG", "Remove_error_code", ownClass)
		r.fails("ERR_ARG", "Remove_error_string", ownClass)
		r.ok("Remove_error_string", own)
		r.fails("ERR_ARG", "Remove_error_string", own)
		r.ok("Remove_error_code", own)
		r.fails("ERR_ARG", "Remove_error_code", own)
		r.ok("Remove_error_class", ownClass)
		r.fails("ERR_ARG", "Remove_error_class", ownClass)
		for _, call := range []string{"class", "code", "string"} {
			r.fails("ERR_ARG", "Remove_error_"+call, r.constant("ERR_RANK"))
		}
		r.fails("ERR_ARG", "Error_class", own, atClass)
		if len(r.l.codes.addedTexts)+len(r.l.codes.classOf)+len(r.l.codes.codeCounts) != 0 {
			r.t.Errorf("left: %v", r.l.codes.classOf)
		}
	})
}

// TestBeforeInit checks that calls that need a rank are rejected without one.
func TestBeforeInit(t *testing.T) {
	r := &rank{t: t, l: New(Standard, new(recorder)), text: new(strings.Builder)}
	r.l.errors, r.l.exit = r.text, func(int) {}
	_, at := ints(0)
	r.call("Comm_rank", "COMM_WORLD", at)
	if text := r.text.String(); !strings.Contains(text, "MPI_Comm_rank was called before MPI_Init") {
		t.Errorf("%q", text)
	}
}
