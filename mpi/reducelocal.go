package mpi

import (
	"unsafe"

	reduction "github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
)

// ReduceLocal sets inout to in ∘ inout, element by element. It sends nothing (MPI_Reduce_local).
func ReduceLocal(in, inout Buffer, op Op) error {
	x := &collectiveCall{call: call{op: "ReduceLocal", peer: Undefined, tag: Undefined}, elem: typedBy(in.of, nil)}
	op = x.typedOperation(op, &in, &inout)
	x.operation(op)
	a, b := x.contents(&in, true, false), x.contents(&inout, true, true)
	if x.err == nil && len(a) != len(b) {
		x.refuse(ErrCount, "in has %d bytes and inout %d", len(a), len(b))
	}
	if x.err != nil {
		return x.err
	}
	if x.dev.User != nil {
		if err := x.dev.User(a, b); err != nil {
			return x.call.error(ErrOther, err)
		}
	} else {
		f, err := reduction.Lookup(x.dev.Op, x.dev.Type)
		if err != nil {
			return x.call.error(ErrOp, err)
		}
		f(b, a)
	}
	x.place()
	return nil
}

// typedOperation is an operation on what is packed.
func (x *collectiveCall) typedOperation(o Op, send, recv *Buffer) Op {
	if o.typed == nil || x.err != nil {
		return o
	}
	t := send.of
	if t == nil {
		t = recv.of
	}
	if t == nil {
		x.refuse(ErrType, "there is no datatype")
		return o
	}
	size := t.Size()
	x.elem.size, x.elem.typ, x.elem.of = max(int(size), 1), 0, nil
	x.dev.Call.Elem = x.elem.size
	f := o.typed
	o.user = func(in, inout []byte) error {
		if size == 0 {
			return nil
		}
		n := int64(len(inout)) / size
		if offset, ok := t.Contiguous(n); ok && offset == 0 && t.Extent() == size {
			return f(unsafe.Pointer(unsafe.SliceData(in)), unsafe.Pointer(unsafe.SliceData(inout)), int(n), t)
		}
		return onPlaces(f, in, inout, n, t)
	}
	o.typed = nil
	return o
}

// onPlaces calls a function on elements that are not contiguous, and lie packed in two slices.
func onPlaces(f func(in, inout unsafe.Pointer, count int, t *datatype.Type) error, in, inout []byte, n int64, t *datatype.Type) error {
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
