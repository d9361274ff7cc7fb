package mpi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// taker is a device that records the collective operations.
type taker struct {
	nullDevice
	calls []collective.Operation
}

func (d *taker) StartCollective(c *collective.Operation) (mpe.Op, error) {
	d.calls = append(d.calls, *c)
	return d.nullDevice.StartCollective(c)
}

// TestCollectiveCalls checks the operations that the device gets. Rank 0 of three makes the calls.
func TestCollectiveCalls(t *testing.T) {
	d := &taker{nullDevice: nullDevice{size: 3}}
	c, err := New(d)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	a, b := []int16{1, 2, 3, 4, 5, 6}, make([]int16, 6)
	whole := func(b []int16) []byte { return asBytes(b) }
	counts, displs := []int{1, 0, 2}, []int{4, 77, 0}
	layout := coll.Layout{Sizes: []int{2, 0, 4}, Offsets: []int{8, 0, 0}}
	for _, test := range []struct {
		name       string
		f          func() error
		call       coll.Call
		send, recv []byte
	}{
		{"Bcast", func() error { return Bcast(ctx, c, a, 2, WithSegment(4), WithAlgorithm("chain")) },
			coll.Call{Collective: coll.Bcast, Bytes: 12, Root: 2, Segment: 4}, nil, whole(a)},
		{"Reduce", func() error { return Reduce(ctx, c, a, b, Sum, 0) }, coll.Call{Collective: coll.Reduce, Bytes: 12},
			whole(a), whole(b)},
		{"Reduce in place", func() error { return Reduce(ctx, c, a, a, Sum, 0) },
			coll.Call{Collective: coll.Reduce, Bytes: 12, InPlace: true}, nil, whole(a)},
		{"Reduce elsewhere", func() error { return Reduce(ctx, c, a, a, Sum, 1) },
			coll.Call{Collective: coll.Reduce, Bytes: 12, Root: 1}, whole(a), nil},
		{"Exscan of nothing", func() error { return Exscan(ctx, c, a[:0], a[:0], Sum) },
			coll.Call{Collective: coll.Exscan}, nil, nil},
		{"Gather in place", func() error { return Gather(ctx, c, a[:2], a, 0) },
			coll.Call{Collective: coll.Gather, Bytes: 4, InPlace: true}, nil, whole(a)},
		{"Gather elsewhere", func() error { return Gather(ctx, c, a, b, 2) },
			coll.Call{Collective: coll.Gather, Bytes: 12, Root: 2}, whole(a), nil},
		{"Gatherv", func() error { return Gatherv(ctx, c, a[:1], b, counts, displs, 0) },
			coll.Call{Collective: coll.Gather, Bytes: 2, Vector: true, Recv: layout}, whole(a[:1]), whole(b)},
		{"Gatherv in place", func() error { return Gatherv(ctx, c, b[4:5], b, counts, displs, 0) },
			coll.Call{Collective: coll.Gather, Bytes: 2, Vector: true, InPlace: true, Recv: layout}, nil, whole(b)},
		{"Gatherv elsewhere", func() error { return Gatherv(ctx, c, a, nil, nil, nil, 1) },
			coll.Call{Collective: coll.Gather, Bytes: 12, Root: 1, Vector: true}, whole(a), nil},
		{"Scatter in place", func() error { return Scatter(ctx, c, a, a[:2], 0) },
			coll.Call{Collective: coll.Scatter, Bytes: 4, InPlace: true}, whole(a), nil},
		{"Scatterv", func() error { return Scatterv(ctx, c, b, a[:1], counts, displs, 0) },
			coll.Call{Collective: coll.Scatter, Bytes: 2, Vector: true, Send: layout}, whole(b), whole(a[:1])},
		{"Allgatherv", func() error { return Allgatherv(ctx, c, a[:1], b, counts, nil) },
			coll.Call{Collective: coll.Allgather, Vector: true,
				Recv: coll.Layout{Sizes: []int{2, 0, 4}, Offsets: []int{0, 0, 2}}}, whole(a[:1]), whole(b)},
		{"Alltoall in place", func() error { return Alltoall(ctx, c, a, a) },
			coll.Call{Collective: coll.Alltoall, Bytes: 4, InPlace: true}, nil, whole(a)},
		{"Alltoallv in place", func() error { return Alltoallv(ctx, c, b, nil, nil, b, counts, displs) },
			coll.Call{Collective: coll.Alltoall, Vector: true, InPlace: true, Recv: layout}, nil, whole(b)},
		{"ReduceScatter", func() error { return ReduceScatter(ctx, c, a[:3], b[:1], counts, Max) },
			coll.Call{Collective: coll.ReduceScatter, Vector: true, Recv: coll.Layout{Sizes: []int{2, 0, 4}}},
			whole(a[:3]), whole(b[:1])},
		{"ReduceScatter in place", func() error { return ReduceScatter(ctx, c, a[:3], a[:1], counts, Max) },
			coll.Call{Collective: coll.ReduceScatter, Vector: true, InPlace: true,
				Recv: coll.Layout{Sizes: []int{2, 0, 4}}}, nil, whole(a[:3])},
		{"ReduceScatterBlock", func() error { return ReduceScatterBlock(ctx, c, a, a[:2], Max) },
			coll.Call{Collective: coll.ReduceScatter, Bytes: 4, InPlace: true}, nil, whole(a)},
	} {
		d.calls = nil
		if err := test.f(); err != nil || len(d.calls) != 1 {
			t.Errorf("%s: %d calls, and %v", test.name, len(d.calls), err)
			continue
		}
		got, want := d.calls[0], test.call
		want.Ranks, want.Elem = 3, 2
		if fmt.Sprintf("%+v", got.Call) != fmt.Sprintf("%+v", want) {
			t.Errorf("%s: the call is\n%+v, not\n%+v", test.name, got.Call, want)
		}
		for what, bufs := range map[string][2][]byte{"send": {got.Send, test.send}, "recv": {got.Recv, test.recv}} {
			if len(bufs[0]) != len(bufs[1]) || len(bufs[0]) > 0 && &bufs[0][0] != &bufs[1][0] {
				t.Errorf("%s: %s is %d bytes, not %d, or elsewhere", test.name, what, len(bufs[0]), len(bufs[1]))
			}
		}
		if got.Comm != 1 || !slices.Equal(got.Members, []int{0, 1, 2}) || got.Datatype != protocol.Int ||
			got.AnyDatatype {
			t.Errorf("%s: %+v", test.name, got)
		}
	}
	if err := Allreduce(ctx, c, []float32{1}, []float32{1}, OpOf(func(_, _ []float32) {}, false)); err != nil {
		t.Fatal(err)
	}
	if last := d.calls[len(d.calls)-1]; last.Datatype != protocol.Float || !last.Call.Ordered || last.User == nil {
		t.Errorf("a function of floats is %+v", last)
	}
}

// TestCallNumbers checks that calls are numbered from 1, and that the numbers wrap around to 1. A rejected call also
// uses up a number, so that the next one is the same on all ranks.
func TestCallNumbers(t *testing.T) {
	d := &taker{nullDevice: nullDevice{size: 2}}
	c, err := New(d)
	if err != nil {
		t.Fatal(err)
	}
	barrier := func(want int) {
		t.Helper()
		err := Barrier(t.Context(), c)
		if got := d.calls[len(d.calls)-1].Tag; got != want {
			t.Errorf("the call has number %d, not %d (%v)", got, want, err)
		}
	}
	barrier(1)
	barrier(2)
	d.start = mpe.ErrFull
	barrier(3)
	if err := Bcast(t.Context(), c, []int32{1}, 5); !errors.Is(err, ErrRoot) {
		t.Error(err)
	}
	d.start = nil
	barrier(5)
	c.callSequence.lastNumber = tagAgree - 2
	barrier(tagAgree - 1)
	barrier(1)
}

// TestElements checks that every element type maps to the type of the same size and representation in reductions.
func TestElements(t *testing.T) {
	type named float64
	for _, test := range []struct {
		of   *datatype.Type
		want op.Type
	}{
		{TypeOf[int8](), op.Int8}, {TypeOf[int16](), op.Int16}, {TypeOf[int32](), op.Int32},
		{TypeOf[int64](), op.Int64},
		{TypeOf[uint8](), op.Uint8}, {TypeOf[uint16](), op.Uint16}, {TypeOf[uint32](), op.Uint32},
		{TypeOf[uint64](), op.Uint64},
		{TypeOf[float32](), op.Float32}, {TypeOf[float64](), op.Float64}, {TypeOf[named](), op.Float64},
		{TypeOf[complex64](), op.Complex64}, {TypeOf[complex128](), op.Complex128}, {TypeOf[Int16Loc](), op.Int16Loc},
		{TypeOf[Int32Loc](), op.Int32Loc}, {TypeOf[Int64Loc](), op.Int64Loc}, {TypeOf[Float32Loc](), op.Float32Loc},
		{TypeOf[Float64Loc](), op.Float64Loc},
	} {
		e, size := elementOf(test.of, nil), test.want.Size()
		if e.typ != test.want || e.size != size || test.of.Extent() != int64(size) {
			t.Errorf("%s is %v of %d bytes, not %v of %d", test.of.Name(), e.typ, e.size, test.want, size)
		}
		if float := e.datatype == protocol.Float; float != (test.want == op.Float32) || e.anyDatatype != (e.size == 1) {
			t.Errorf("%s travels as %v, any: %v", test.of.Name(), e.datatype, e.anyDatatype)
		}
	}
	// The index has the same offset as in C.
	b := asBytes([]Int64Loc{{Value: 1, Index: 7}})
	if len(b) != 16 || binary.LittleEndian.Uint32(b[8:]) != 7 {
		t.Errorf("the bytes are %v", b)
	}
}

// TestOpOfUnalignedBytes checks that a function gets valid elements at any alignment of the bytes.
func TestOpOfUnalignedBytes(t *testing.T) {
	o := OpOf(func(in, inout []float64) {
		for i := range in {
			inout[i] = 10*in[i] + inout[i]
		}
	}, true)
	for shift := range 9 {
		numbers := func(list ...float64) []byte {
			b := make([]byte, shift, 64)
			for _, v := range list {
				b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
			}
			return b[shift:]
		}
		in, inout := numbers(1, 2, 3), numbers(4, 5, 6)
		o.byteFunc(in, inout)
		if want := numbers(14, 25, 36); string(inout) != string(want) {
			t.Errorf("shifted by %d bytes: %v", shift, elementsOf[float64](inout))
		}
		o.byteFunc(in[:0], inout[:0])
	}
	if o.String() != "function of float64" || Sum.String() != "SUM" || MaxLoc.String() != "MAXLOC" ||
		(Op{}).String() != "?" {
		t.Errorf("operations are called %v, %v, %v and %v", o, Sum, MaxLoc, Op{})
	}
}

func TestOverlap(t *testing.T) {
	b := make([]byte, 16)
	for _, test := range []struct {
		x, y          []byte
		same, overlap bool
	}{
		{b, b, true, true}, {b[:8], b[8:], false, false}, {b[:9], b[8:], false, true}, {b[8:], b[:9], false, true},
		{b[4:8], b, false, true}, {b[:0], b[:0], false, false}, {nil, b, false, false},
		{b, make([]byte, 16), false, false}, {b[:8], b, false, true},
	} {
		if sameMemory(test.x, test.y) != test.same || overlaps(test.x, test.y) != test.overlap {
			t.Errorf("%d bytes at %p and %d at %p: same %v, overlap %v", len(test.x), unsafe.SliceData(test.x),
				len(test.y), unsafe.SliceData(test.y),
				sameMemory(test.x, test.y), overlaps(test.x, test.y))
		}
	}
}

func TestCollectiveErrorTexts(t *testing.T) {
	c := newComm(t, &nullDevice{size: 2, err: fmt.Errorf("step 3: %w", collective.ErrMismatch)})
	a := []int32{1, 2, 3, 4}
	ctx := t.Context()
	fpga := newComm(t, &nullDevice{size: 3, limits: mpe.PeerInfo{Profile: "cloudfpga", NoComms: true}})
	q, err := Ibarrier(fpga)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Wait(ctx)
	for _, e := range []struct {
		err  error
		want string
	}{
		{Barrier(ctx, c), "mpi: Barrier, on rank 0 of world: MPI_ERR_OTHER: step 3: not all ranks have made the " +
			"same call"},
		{Bcast(ctx, c, a, 2), "mpi: Bcast, on rank 0 of world: MPI_ERR_ROOT: there is no rank 2: world has ranks 0 to 1"},
		{Allreduce(ctx, c, a, a[:3], Sum), "mpi: Allreduce, on rank 0 of world: MPI_ERR_COUNT: send has 4 elements " +
			"and recv 3: they must have as many"},
		{Allreduce(ctx, c, a[:2], a[1:3], Sum),
			"mpi: Allreduce, on rank 0 of world: MPI_ERR_BUFFER: send and recv overlap: pass separate buffers, or " +
				"the same one for both, for a call in place"},
		{Allgather(ctx, c, a[2:], a),
			"mpi: Allgather, on rank 0 of world: MPI_ERR_BUFFER: send overlaps recv, and is not the caller's own " +
				"block of it: for a call in place give recv[0:2]"},
		{Reduce(ctx, c, []complex64{1}, []complex64{1}, LAnd, 0),
			"mpi: Reduce, on rank 0 of world: MPI_ERR_OP: LAND is not defined for complex64"},
		{Reduce(ctx, c, a, a, OpOf(func(_, _ []int64) {}, true), 0),
			"mpi: Reduce, on rank 0 of world: MPI_ERR_OP: the operation is on int64, and the buffers hold int32"},
		{Allgatherv(ctx, c, a, a, []int{2, 3}, nil),
			"mpi: Allgatherv, on rank 0 of world: MPI_ERR_COUNT: the block of rank 1 in recv, 3 elements at 2, is " +
				"not within it: it has 4"},
		{Allgatherv(ctx, c, a, a, []int{2, 2}, []int{1, 0}),
			"mpi: Allgatherv, on rank 0 of world: MPI_ERR_ARG: the blocks of ranks 1 and 0 in recv overlap"},
		{Barrier(ctx, c, WithAlgorithm("magic")),
			"mpi: Barrier, on rank 0 of world: MPI_ERR_ARG: Barrier by magic: there is no " +
				"such algorithm; there are [dissemination toggle shared]"},
		{Bcast(ctx, c, a, 0, WithSegment(5)), "mpi: Bcast, on rank 0 of world: MPI_ERR_ARG: a segment of 5 bytes is not " +
			"a whole number of elements of 4 bytes, one or more"},
		{Bcast(ctx, c, a, 0, WithAlgorithm("flat"), WithSegment(8)),
			"mpi: Bcast, on rank 0 of world: MPI_ERR_ARG: Bcast by flat has no segments"},
		{Barrier(ctx, fpga),
			"mpi: Barrier, on rank 0 of world: MPI_ERR_PENDING: Ibarrier is in progress, and messages of ranks 1, 2 of " +
				"world (profile cloudfpga) match by their order alone, so that two calls would be mixed up: wait " +
				"for it first"},
		{Barrier(ctx, newComm(t,
			&nullDevice{size: 2, err: &collective.CallFailedError{Rank: 1, Collective: coll.Bcast, Comm: 1, Number: 7,
				Cause: collective.CauseTimeout}})),
			"mpi: Barrier, on rank 0 of world: MPI_ERR_OTHER: rank 1 has abandoned Bcast, call 7 in communicator 1: " +
				"its deadline expired"},
		{Barrier(ctx, nil), "mpi: Barrier: MPI_ERR_COMM: the communicator is nil: the calling rank is not a " +
			"member of it"},
	} {
		if e.err == nil || e.err.Error() != e.want {
			t.Errorf("the error is\n%v\nnot\n%s", e.err, e.want)
		}
	}
}
