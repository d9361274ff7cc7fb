package capi

import (
	"io"
	"sync"
	"testing"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/internal/testkit/race"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/node"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// costly returns the calls that programs make for each message or in each step. Each entry is a sequence of calls that
// a program makes repeatedly, with arguments that are prepared once.
func costly(l *Library) map[string][]prepared {
	number := func(name string) int {
		for i := range l.calls {
			if l.calls[i].name == name {
				return i
			}
		}
		panic(name)
	}
	constant := func(name string) uint64 { return uint64(l.abi.constants[name]) }
	at := func(p unsafe.Pointer) uint64 { return uint64(uintptr(p)) }
	sent, got, status, request, n := new([4]byte), new([4]byte), new([8]int32), new([2]uint64), new(int32)
	second := unsafe.Add(unsafe.Pointer(request), l.abi.handleLen)
	indices := new([2]int32)
	kept = append(kept, sent, got, status, request, n, indices)
	call := func(name string, list ...uint64) prepared {
		p := prepared{number(name), new([maxArgs]uint64)}
		copy(p.list[:], list)
		return p
	}
	self, world, char := constant("COMM_SELF"), constant("COMM_WORLD"), constant("CHAR")
	message := func(p *[4]byte) []uint64 { return []uint64{at(unsafe.Pointer(p)), 4, char, 0, 7, self} }
	isend := call("Isend", append(message(sent), at(unsafe.Pointer(request)))...)
	irecv := call("Irecv", append(message(got), at(second))...)
	send := call("Send", message(sent)...)
	none := call("Send", message(sent)...)
	none.list[3] = constant("PROC_NULL")
	recv := call("Recv", append(message(got), at(unsafe.Pointer(status)))...)
	wait := call("Wait", at(unsafe.Pointer(request)), constant("STATUS_IGNORE"))
	test := call("Test", at(unsafe.Pointer(request)), at(unsafe.Pointer(n)), at(unsafe.Pointer(status)))
	waitall := call("Waitall", 2, at(unsafe.Pointer(request)), constant("STATUSES_IGNORE"))
	waitany := call("Waitany", 2, at(unsafe.Pointer(request)), at(unsafe.Pointer(n)), constant("STATUS_IGNORE"))
	waitsome := call("Waitsome", 2, at(unsafe.Pointer(request)), at(unsafe.Pointer(n)), at(unsafe.Pointer(indices)),
		constant("STATUSES_IGNORE"))
	return map[string][]prepared{
		"Comm_rank":       {call("Comm_rank", self, at(unsafe.Pointer(n)))},
		"Send to none":    {none},
		"Send":            {send, recv},
		"Isend, Wait":     {isend, recv, wait},
		"Isend, Test":     {isend, recv, test},
		"Irecv, Waitall":  {irecv, isend, waitall},
		"Irecv, Waitany":  {irecv, isend, waitany, waitany},
		"Irecv, Waitsome": {irecv, isend, waitsome},
		"Sendrecv": {call("Sendrecv",
			append(append(message(sent)[:5], message(got)...), constant("STATUS_IGNORE"))...)},
		"Iprobe":  {send, call("Iprobe", 0, 7, self, at(unsafe.Pointer(n)), at(unsafe.Pointer(status))), recv},
		"Barrier": {call("Barrier", world)},
		"Reduce": {call("Reduce", at(unsafe.Pointer(sent)), at(unsafe.Pointer(got)), 1, constant("INT"),
			constant("SUM"), 0, world)},
		"Alltoall": {call("Alltoall", at(unsafe.Pointer(sent)), 2, char, at(unsafe.Pointer(got)), 2, char, world)},
		"Bcast":    {call("Bcast", at(unsafe.Pointer(sent)), 4, char, 0, world)},
		"Allreduce": {call("Allreduce", at(unsafe.Pointer(sent)), at(unsafe.Pointer(got)), 1, constant("INT"),
			constant("SUM"), world)},
		"Allgather": {call("Allgather", at(unsafe.Pointer(sent)), 2, char, at(unsafe.Pointer(got)), 2, char, world)},
		"Get_count": {call("Get_count", at(unsafe.Pointer(status)), char, at(unsafe.Pointer(n)))},
	}
}

// kept holds references to memory of which only addresses are stored elsewhere.
var kept []any

type prepared struct {
	number int
	list   *[maxArgs]uint64
}

// libraries returns a Library for each rank of a world.
func libraries(tb testing.TB, which ABI, ranks int) []*Library {
	devices, err := node.StartLocal(ranks, protocol.Extended)
	if err != nil {
		tb.Fatal(err)
	}
	list := make([]*Library, ranks)
	all := func(do func(l *Library) error) {
		var wait sync.WaitGroup
		for _, l := range list {
			wait.Go(func() {
				if err := do(l); err != nil {
					tb.Error(err)
				}
			})
		}
		wait.Wait()
	}
	for i, d := range devices {
		l := New(which, new(recorder))
		l.errors = io.Discard
		l.exit = func(code int) { tb.Errorf("exit %d", code) }
		l.openRank = func(*Library) (mpe.Device, error) { return d, nil }
		list[i] = l
	}
	all((*Library).initOnce)
	tb.Cleanup(func() { all((*Library).removeUser) })
	return list
}

// TestAllocations checks that frequent calls do not allocate memory.
func TestAllocations(t *testing.T) {
	for name, which := range map[string]ABI{"MPICH": MPICH, "standard": Standard} {
		l := libraries(t, which, 1)[0]
		for call, list := range costly(l) {
			run := func() {
				for _, p := range list {
					if code := l.Call(p.number, unsafe.Pointer(p.list)); code != 0 {
						text, _ := l.codes.text(code)
						t.Fatalf("%s: %s", l.calls[p.number].name, text)
					}
				}
			}
			run()
			if n := testing.AllocsPerRun(200, run); n != 0 && !race.Enabled {
				t.Errorf("%s, %s: %v allocations", name, call, n)
			}
		}
	}
}

func BenchmarkCall(b *testing.B) {
	l := libraries(b, Standard, 1)[0]
	for name, list := range costly(l) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, p := range list {
					l.Call(p.number, unsafe.Pointer(p.list))
				}
			}
		})
	}
}

// BenchmarkCallOfTwo measures collective calls of two ranks that share memory.
func BenchmarkCallOfTwo(b *testing.B) {
	ranks := libraries(b, Standard, 2)
	for _, name := range []string{"Barrier", "Bcast", "Reduce", "Allreduce", "Allgather", "Alltoall"} {
		b.Run(name, func(b *testing.B) {
			var both sync.WaitGroup
			for _, l := range ranks {
				p := costly(l)[name][0]
				both.Go(func() {
					for range b.N {
						if l.Call(p.number, unsafe.Pointer(p.list)) != 0 {
							b.Error("the call has failed")
							return
						}
					}
				})
			}
			both.Wait()
		})
	}
}
