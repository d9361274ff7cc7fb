package mpi

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
)

// Op is an operation that combines elements, either predefined or returned by OpOf. The zero Op is invalid.
type Op struct {
	builtin op.Op
	// byteFunc combines elements of type elemType.
	byteFunc func(in, inout []byte) error
	elemType reflect.Type
	// typedFunc combines elements of any datatype.
	typedFunc func(in, inout unsafe.Pointer, count int, t *datatype.Type) error
	ordered   bool
}

// The operations of the standard. Sum and Prod accept all numbers; integers wrap around. Max and Min accept integers
// and floats; if either float is NaN, so is the result. LAnd, LOr and LXor (logical: nonzero is true, and the result is
// 1 or 0) and BAnd, BOr and BXor (bitwise) accept integers. MaxLoc and MinLoc accept values with an index; of equal
// values, they choose the lower index.
var (
	Sum    = Op{builtin: op.Sum}
	Prod   = Op{builtin: op.Prod}
	Max    = Op{builtin: op.Max}
	Min    = Op{builtin: op.Min}
	LAnd   = Op{builtin: op.LAnd}
	LOr    = Op{builtin: op.LOr}
	LXor   = Op{builtin: op.LXor}
	BAnd   = Op{builtin: op.BAnd}
	BOr    = Op{builtin: op.BOr}
	BXor   = Op{builtin: op.BXor}
	MaxLoc = Op{builtin: op.MaxLoc}
	MinLoc = Op{builtin: op.MinLoc}
)

// OpOf returns an operation on numbers of type T. f sets inout[i] to in[i] ∘ inout[i] for each i, where in
// comes from lower ranks. The operation must be associative. commute declares that it is also commutative,
// which permits faster algorithms. All ranks must pass the same operation.
//
// f may be called from any goroutine, concurrently for several calls, each time with some of the elements. It
// must not modify in, retain the slices, call this package, or panic.
func OpOf[T Element](f func(in, inout []T), commute bool) Op {
	if f == nil {
		return Op{}
	}
	return Op{elemType: reflect.TypeFor[T](), ordered: !commute,
		byteFunc: func(in, inout []byte) error { return callOnBytes(f, in, inout) }}
}

// OpOfStructs is like OpOf, for buffers whose datatype is StructType of T, or another datatype with the size of
// T. In the elements passed to f, bytes that are not part of a message are 0.
func OpOfStructs[T any](f func(in, inout []T), commute bool) Op {
	if f == nil {
		return Op{}
	}
	return Op{ordered: !commute, typedFunc: func(in, inout unsafe.Pointer, count int, t *datatype.Type) error {
		var zero T
		begin, end, err := t.Span(int64(count))
		switch size := int64(unsafe.Sizeof(zero)); {
		case err != nil:
			return err
		case !isFixed[T]() || t.Extent() != size || begin < 0 || end > int64(count)*size:
			return fmt.Errorf("%w: an operation on %T, and a buffer with elements of %d bytes", datatype.ErrArgument,
				zero, t.Extent())
		}
		a, b := make([]T, count), make([]T, count)
		packed := make([]byte, int64(count)*t.Size())
		move := func(to, from unsafe.Pointer) {
			t.Pack(packed, from, int64(count), 0)
			t.Unpack(to, int64(count), packed, 0)
		}
		move(unsafe.Pointer(unsafe.SliceData(a)), in)
		move(unsafe.Pointer(unsafe.SliceData(b)), inout)
		f(a, b)
		move(inout, unsafe.Pointer(unsafe.SliceData(b)))
		return nil
	}}
}

// String returns the standard's name of the operation, without the prefix MPI_.
func (o Op) String() string {
	if o.typedFunc != nil {
		return "function"
	}
	if o.byteFunc != nil {
		return "function of " + o.elemType.String()
	}
	return o.builtin.String()
}

// callOnBytes calls the function f on elements stored as bytes. The error is always nil.
func callOnBytes[T Element](f func(in, inout []T), in, inout []byte) error {
	a, b := elementsOf[T](in), elementsOf[T](inout)
	f(a, b)
	if back := asBytes(b); len(back) > 0 && &back[0] != &inout[0] {
		copy(inout, back)
	}
	return nil
}

// elementsOf is the inverse of asBytes. If the bytes are not aligned for T, it returns a copy.
func elementsOf[T Element](b []byte) []T {
	var zero T
	n := len(b) / int(unsafe.Sizeof(zero))
	p := unsafe.Pointer(unsafe.SliceData(b))
	if uintptr(p)%unsafe.Alignof(zero) == 0 {
		return unsafe.Slice((*T)(p), n)
	}
	list := make([]T, n)
	copy(asBytes(list), b)
	return list
}

// setOperation sets the operation of a reduction of buffers.
func (x *collectiveCall) setOperation(o Op, send, recv *Buffer) {
	operation := &x.devOp
	operation.Type = x.elem.typ
	switch {
	case x.err != nil:
	case o.typedFunc != nil:
		x.setFunction(o, send, recv)
	case o.byteFunc != nil && x.elem.typ == 0:
		x.recordError(ErrOp, "an operation made by OpOf is for numbers of one type: use OpOfStructs for other buffers")
	case o.byteFunc != nil && predefinedType(o.elemType).Element() != x.elem.typ:
		x.recordError(ErrOp, "the operation is on %v, and the buffers hold %v", o.elemType, x.elem.typ)
	case o.byteFunc != nil:
		operation.User, operation.Call.Ordered = o.byteFunc, o.ordered
	case o.builtin == 0:
		x.recordError(ErrOp, "there is no operation: use one such as Sum, or make one with OpOf")
	default:
		if _, err := op.Lookup(o.builtin, operation.Type); err != nil {
			x.recordError(ErrOp, "%v is not defined for %v", o, operation.Type)
		}
		operation.Op = o.builtin
	}
}

// setFunction sets the operation of a reduction to a function for elements of any datatype. The elements are packed
// while they are combined.
func (x *collectiveCall) setFunction(o Op, send, recv *Buffer) {
	t := send.datatype
	if t == nil {
		t = recv.datatype
	}
	if t == nil {
		x.recordError(ErrType, "there is no datatype")
		return
	}
	d, size, f := &x.devOp, t.Size(), o.typedFunc
	x.elem.size, d.Type = max(int(size), 1), 0
	d.Call.Elem, d.Call.Ordered = x.elem.size, o.ordered
	d.User = func(in, inout []byte) error {
		if size == 0 {
			return nil
		}
		n := int64(len(inout)) / size
		if offset, ok := t.Contiguous(n); ok && offset == 0 && t.Extent() == size {
			return f(unsafe.Pointer(unsafe.SliceData(in)), unsafe.Pointer(unsafe.SliceData(inout)), int(n), t)
		}
		return callUnpacked(f, in, inout, n, t)
	}
}

// callUnpacked calls a function on packed elements of a datatype that is not contiguous, after unpacking them.
func callUnpacked(f func(in, inout unsafe.Pointer, count int, t *datatype.Type) error, in, inout []byte, n int64,
	t *datatype.Type) error {
	begin, end, err := t.Span(n)
	if err != nil {
		return err
	}
	low, high := min(begin, 0), max(end, 0)
	both := make([]byte, 2*(high-low))
	a, b := unsafe.Pointer(unsafe.SliceData(both[-low:])), unsafe.Pointer(unsafe.SliceData(both[high-2*low:]))
	t.Unpack(a, n, in, 0)
	t.Unpack(b, n, inout, 0)
	if err := f(a, b, int(n), t); err != nil {
		return err
	}
	t.Pack(inout, b, n, 0)
	return nil
}
