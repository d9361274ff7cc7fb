package mpi_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
	"github.com/zrlmpi/zrlmpid/mpi/job"
)

// must returns the datatype, and panics on an error.
func must(t *datatype.Type, err error) *datatype.Type {
	if err != nil {
		panic(err)
	}
	return t
}

// TestTyped transposes a matrix in a message. Either the sender or the receiver uses a datatype for the columns.
func TestTyped(t *testing.T) {
	const lines, columns = 30, 50
	of := mpi.TypeOf[float64]()
	// All columns in order.
	column := must(datatype.Resized(must(datatype.Vector(lines, 1, columns, of)), 0, 8))
	matrix, transposed := make([]float64, lines*columns), make([]float64, lines*columns)
	for i := range matrix {
		matrix[i] = float64(i)
		transposed[i%columns*lines+i/columns] = float64(i)
	}
	err := job.Run(t.Context(), 2, func(ctx context.Context, world *mpi.Comm) error {
		if world.Rank() == 0 {
			r, err := world.Isend(mpi.Typed(matrix, columns, column), 1, 2)
			return errors.Join(err, world.Send(ctx, mpi.Typed(matrix, columns, column), 1, 1),
				mpi.Send(ctx, world, transposed, 1, 1), wait(ctx, r),
				world.Send(ctx, mpi.Typed(matrix, 1, column), 1, 3),
				world.Send(ctx, mpi.Typed(matrix[:4], 2, must(datatype.Contiguous(2, of))), 1, 3))
		}
		got := make([]float64, lines*columns)
		if _, err := mpi.Recv(ctx, world, got, 0, 1); err != nil || !slices.Equal(got, transposed) {
			t.Errorf("sent as columns: %v, %v", got, err)
		}
		clear(got)
		st, err := world.Recv(ctx, mpi.Typed(got, columns, column), 0, 1)
		if err != nil || !slices.Equal(got, matrix) || mpi.CountOf(st, column) != columns ||
			mpi.Elements(st, column) != lines*columns {
			t.Errorf("received as columns: %v, %+v, %v", got, st, err)
		}
		clear(got)
		r, err := world.Irecv(mpi.Typed(got, columns, column), 0, 2)
		if err = errors.Join(err, wait(ctx, r)); err != nil || !slices.Equal(got, matrix) {
			t.Errorf("%v, %v", got, err)
		}
		// One column instead of several, and a message longer than the buffer.
		clear(got)
		st, err = world.Recv(ctx, mpi.Typed(got, columns, column), 0, 3)
		if err != nil || mpi.CountOf(st, column) != 1 || got[columns] != columns || got[1] != 0 {
			t.Errorf("one column: %+v, %v, %v", st, got[:2*columns], err)
		}
		clear(got)
		pair := must(datatype.Vector(2, 1, 3, of))
		st, err = world.Recv(ctx, mpi.Typed(got[:4], 1, pair), 0, 3)
		if !errors.Is(err, mpi.ErrTruncate) || !slices.Equal(got[:4], []float64{0, 0, 0, 1}) ||
			mpi.Elements(st, pair) != 2 {
			t.Errorf("too long: %+v, %v, %v", st, got[:4], err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func wait(ctx context.Context, r mpi.Request) error {
	_, err := r.Wait(ctx)
	return err
}

// TestTypedMistakes checks that elements outside the buffer are rejected.
func TestTypedMistakes(t *testing.T) {
	of := mpi.TypeOf[int32]()
	before := must(datatype.Hindexed([]int64{1, 1}, []int64{-4, 4}, of))
	far := must(datatype.Vector(2, 1, 4, of))
	huge := must(datatype.Resized(of, 0, math.MaxInt64/2))
	err := job.Run(t.Context(), 1, func(ctx context.Context, world *mpi.Comm) error {
		buf := make([]int32, 4)
		for _, x := range []struct {
			c     *mpi.Comm
			of    *datatype.Type
			count int
			class mpi.Class
			says  string
		}{
			{world, nil, 1, mpi.ErrType, "there is no datatype"},
			{world, of, -1, mpi.ErrCount, "-1 elements"},
			{world, of, 5, mpi.ErrBuffer, "use bytes 0 to 20 of the buffer, which has 16"},
			{world, far, 1, mpi.ErrBuffer, "use bytes 0 to 20"},
			{world, before, 1, mpi.ErrBuffer, "use bytes -4 to 8"},
			{world, huge, 4, mpi.ErrCount, "more than 64 bits"},
			{nil, must(datatype.Vector(2, 1, 2, of)), 1, mpi.ErrComm, "the communicator is nil"},
			{nil, of, 1, mpi.ErrComm, "the communicator is nil"},
		} {
			_, r := x.c.Recv(ctx, mpi.Typed(buf, x.count, x.of), 0, 0)
			_, ir := x.c.Irecv(mpi.Typed(buf, x.count, x.of), 0, 0)
			_, is := x.c.Isend(mpi.Typed(buf, x.count, x.of), 0, 0)
			for _, err := range []error{x.c.Send(ctx, mpi.Typed(buf, x.count, x.of), 0, 0), r, ir, is} {
				if mpi.ClassOf(err) != x.class || !strings.Contains(err.Error(), x.says) {
					t.Errorf("%v, want %v, %q", err, x.class, x.says)
				}
			}
		}
		// No elements, and no destination.
		return errors.Join(world.Send(ctx, mpi.Typed(buf, 1, far), mpi.ProcNull, 0),
			world.Send(ctx, mpi.Typed(buf[:0], 0, far), mpi.ProcNull, 0))
	})
	if err == nil || !strings.Contains(err.Error(), "use bytes 0 to 20") {
		t.Error(err)
	}
	if n := mpi.CountOf(mpi.Status{Bytes: 6}, of); n != mpi.Undefined {
		t.Error(n)
	}
	if n := mpi.Elements(mpi.Status{Bytes: 6}, of); n != mpi.Undefined {
		t.Error(n)
	}
	if n := mpi.CountOf(mpi.Status{}, must(datatype.Contiguous(0, of))); n != 0 {
		t.Error(n)
	}
	if mpi.CountOf(mpi.Status{Bytes: mpi.Undefined}, of) != mpi.Undefined ||
		mpi.Elements(mpi.Status{Bytes: mpi.Undefined}, of) != mpi.Undefined {
		t.Error("the length is not known")
	}
}

// TestStructType checks that all fields must have types for which any bytes are a valid value.
func TestStructType(t *testing.T) {
	type inner struct {
		A int8
		_ [3]byte
		B [2]complex64
	}
	type good struct {
		Inner [2]inner
		Last  uint16
	}
	typ, err := mpi.StructType[good]()
	if err != nil || typ.Size() != 2*17+2 || typ.Extent() != int64(unsafe.Sizeof(good{})) {
		t.Fatalf("%v, %v", typ, err)
	}
	type bad struct {
		Inner struct{ Name string }
	}
	if _, err := mpi.StructType[bad](); !errors.Is(err, datatype.ErrArgument) ||
		!strings.Contains(err.Error(), "field Inner of mpi_test.bad: field Name of struct { Name string }: ") {
		t.Errorf("%v", err)
	}
	for name, err := range map[string]error{
		"int": typeError[int](), "bool": typeError[bool](), "pointer": typeError[*int32](),
		"slice": typeError[[2][]int32](),
	} {
		if !errors.Is(err, datatype.ErrArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	err = job.Run(t.Context(), 1, func(ctx context.Context, world *mpi.Comm) error {
		return world.Send(ctx, mpi.Typed([]*int32{nil}, 1, mpi.TypeOf[int64]()), 0, 0)
	})
	if !errors.Is(err, mpi.ErrType) {
		t.Errorf("a slice of pointers: %v", err)
	}
}

func typeError[T any]() error {
	_, err := mpi.StructType[T]()
	return err
}

// TestOpOfStructs reduces structs with a function. They have the same layout in the memory of every rank.
func TestOpOfStructs(t *testing.T) {
	type pair struct {
		Least int8
		Sum   int64
		Count uint16
	}
	typ := must(mpi.StructType[pair]())
	op := mpi.OpOfStructs(func(in, inout []pair) {
		for i, a := range in {
			b := &inout[i]
			*b = pair{min(a.Least, b.Least), a.Sum + b.Sum, a.Count + b.Count}
		}
	}, true)
	err := job.Run(t.Context(), 3, func(ctx context.Context, world *mpi.Comm) error {
		n := int64(world.Rank() + 1)
		send, recv := []pair{{int8(n), n, 1}, {int8(-n), 10 * n, 2}}, make([]pair, 2)
		if err := world.Allreduce(ctx, mpi.Typed(send, 2, typ), mpi.Typed(recv, 2, typ), op); err != nil {
			return err
		}
		if want := []pair{{1, 6, 3}, {-3, 60, 6}}; !slices.Equal(recv, want) {
			t.Errorf("%v, want %v", recv, want)
		}
		numbers := []int32{1, 2}
		err := mpi.ReduceLocal(mpi.Typed(numbers, 2, mpi.TypeOf[int32]()),
			mpi.Typed(make([]int32, 2), 2, mpi.TypeOf[int32]()), op)
		if err == nil || !strings.Contains(err.Error(),
			"an operation on mpi_test.pair, and a buffer with elements of 4 bytes") {
			t.Errorf("with numbers: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
