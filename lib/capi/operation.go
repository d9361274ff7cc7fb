package capi

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
)

// operation is a reduction operation.
type operation struct {
	mpi.Op
	// function is the program's function, or nil.
	function    unsafe.Pointer
	largeCounts bool
	commutative bool
	// oneSided is set if the operation is allowed only in one-sided communication, not in reductions.
	oneSided bool
	name     string
	// reductionCache caches the reductions of a predefined operation. Looking one up by name would take a tenth of the
	// time of a short call.
	reductionCache atomic.Pointer[[]*reduction]
}

// reduction is an operation on elements of one predefined datatype, in the form that package mpi uses.
type reduction struct {
	datatype    *dtype
	op          mpi.Op
	elementType *datatype.Type
}

var _ = add(map[string]implementation{
	"Op_create":      func(a *args) { a.newOperation(false) },
	"Op_create_c":    func(a *args) { a.newOperation(true) },
	"Op_free":        (*args).freeOperation,
	"Op_commutative": func(a *args) { a.setFlag(1, a.operation(0).commutative) },
	"Reduce_local":   (*args).reduceLocal,
})

// defineOperations defines the ABI's operations. Those of one-sided communication have handles too, but reductions
// reject them.
func (l *Library) defineOperations() {
	for name, op := range map[string]mpi.Op{
		"SUM": mpi.Sum, "PROD": mpi.Prod, "MAX": mpi.Max, "MIN": mpi.Min, "LAND": mpi.LAnd, "LOR": mpi.LOr,
		"LXOR": mpi.LXor,
		"BAND": mpi.BAnd, "BOR": mpi.BOr, "BXOR": mpi.BXor, "MAXLOC": mpi.MaxLoc, "MINLOC": mpi.MinLoc,
	} {
		l.ops.define(l.abi.handle(kindOp, l.abi.constants[name]), &operation{Op: op, commutative: true, name: name})
	}
	for _, name := range []string{"REPLACE", "NO_OP"} {
		l.ops.define(l.abi.handle(kindOp, l.abi.constants[name]), &operation{oneSided: true, name: name})
	}
}

func (a *args) operation(i int) *operation {
	h := a.handle(i, kindOp)
	if o := a.lib.ops.get(h); o != nil {
		return o
	}
	panic(failf(mpi.ErrOp, "%#x is not a reduction operation, or has been freed", h))
}

// newOperation implements MPI_Op_create(user_fn, commute, op) and, if wide is set, MPI_Op_create_c.
func (a *args) newOperation(wide bool) {
	f := a.pointer(0)
	if f == nil {
		panic(failf(mpi.ErrArg, "the function is a null pointer"))
	}
	o, _ := newObject(a, a.lib.ops, 2)
	o.function, o.largeCounts, o.commutative = f, wide, a.int(1) != 0
}

func (a *args) freeOperation() {
	h := a.handleIn(0)
	o := a.lib.ops.get(h)
	switch {
	case o == nil:
		panic(failf(mpi.ErrOp, "%#x is not a reduction operation, or has been freed", h))
	case o.function == nil:
		panic(failf(mpi.ErrOp, "MPI_%s is predefined and cannot be freed", o.name))
	}
	removeObject(a, a.lib.ops, 0, h)
}

// bitwise lists the operations defined for MPI_BYTE.
var bitwise = []string{"BAND", "BOR", "BXOR"}

// reduction returns the reduction for the operation in argument 4 and the datatype in argument 3.
func (a *args) reduction() *reduction {
	o := a.operation(4)
	t := a.committedType(3)
	if r := o.cachedReduction(t); r != nil {
		return r
	}
	op, of := a.newReduction(o, t)
	r := &reduction{t, op, of}
	if o.function == nil && t.Contents().Combiner == datatype.Named { // neither can be freed
		list := []*reduction{r}
		known := o.reductionCache.Load()
		if known != nil {
			list = append(list, *known...)
		}
		o.reductionCache.CompareAndSwap(known, &list)
	}
	return r
}

// cachedReduction returns the cached reduction of a predefined operation on a datatype, or nil.
func (o *operation) cachedReduction(t *dtype) *reduction {
	if known := o.reductionCache.Load(); known != nil {
		for _, r := range *known {
			if r.datatype == t {
				return r
			}
		}
	}
	return nil
}

// newReduction returns the form that package mpi uses for an operation on a datatype, and the type of the elements.
func (a *args) newReduction(op *operation, t *dtype) (mpi.Op, *datatype.Type) {
	if op.oneSided {
		panic(failf(mpi.ErrOp, "MPI_%s is for one-sided communication only", op.name))
	}
	if op.function != nil {
		f, wide, handle, back := op.function, op.largeCounts, t.handle, a.lib.callbacks
		return mpi.Foreign.OpOf(func(in, inout unsafe.Pointer, n int, _ *datatype.Type) error {
			back.Reduce(f, in, inout, int64(n), wide, handle)
			return nil
		}, op.commutative), t.Type
	}
	if t.predefined == "BYTE" && !slices.Contains(bitwise, op.name) {
		panic(failf(mpi.ErrOp, "MPI_%s is not defined for MPI_BYTE, which is not a number", op.name))
	}
	if f := extraReductions[reductionOf{op.name, t.predefined}]; f != nil {
		return mpi.Foreign.OpOf(f, true), t.Type
	}
	if slices.Contains(longDoubles, t.predefined) {
		name, of, back := op.name, "MPI_"+t.predefined, a.lib.callbacks
		if !back.LongDouble(name, of, nil, nil, 0) {
			panic(failf(mpi.ErrOp, "MPI_%s is not defined for %s", name, of))
		}
		return mpi.Foreign.OpOf(func(in, inout unsafe.Pointer, n int, _ *datatype.Type) error {
			back.LongDouble(name, of, in, inout, int64(n))
			return nil
		}, true), cmp.Or(t.reductionType, t.Type)
	}
	if t.reductionType != nil {
		return op.Op, t.reductionType
	}
	if made := t.Contents(); made.Combiner != datatype.Named && made.Combiner != datatype.CombinerDup {
		panic(failf(mpi.ErrOp, "MPI_%s is not defined for derived datatypes: make an operation with MPI_Op_create",
			op.name))
	}
	return op.Op, t.Type
}

// longDoubles lists the datatypes whose numbers only C can compute with.
var longDoubles = []string{"LONG_DOUBLE", "C_LONG_DOUBLE_COMPLEX", "CXX_LONG_DOUBLE_COMPLEX", "LONG_DOUBLE_INT"}

// reductionOf identifies a reduction by the ABI's names of its operation and its datatype.
type reductionOf struct{ operation, datatype string }

// extraReductions holds the reductions on Fortran's pairs, in which the index has the same type as the value.
var extraReductions = map[reductionOf]func(in, inout unsafe.Pointer, n int, t *datatype.Type) error{
	{"MAXLOC", "2REAL"}:             located(4, func(in, have float64) bool { return in > have }),
	{"MINLOC", "2REAL"}:             located(4, func(in, have float64) bool { return in < have }),
	{"MAXLOC", "2DOUBLE_PRECISION"}: located(8, func(in, have float64) bool { return in > have }),
	{"MINLOC", "2DOUBLE_PRECISION"}: located(8, func(in, have float64) bool { return in < have }),
}

// located returns an operation on pairs of floats, each of size bytes. The better value wins; if both values are equal,
// the lower index wins.
func located(size int, better func(in, have float64) bool) func(in, inout unsafe.Pointer, n int,
	t *datatype.Type) error {
	read := func(b []byte) float64 {
		if size == 4 {
			return float64(math.Float32frombits(binary.NativeEndian.Uint32(b)))
		}
		return math.Float64frombits(binary.NativeEndian.Uint64(b))
	}
	return func(in, inout unsafe.Pointer, n int, _ *datatype.Type) error {
		a, b := unsafe.Slice((*byte)(in), 2*size*n), unsafe.Slice((*byte)(inout), 2*size*n)
		for ; len(a) > 0; a, b = a[2*size:], b[2*size:] {
			x, y := read(a), read(b)
			if better(x, y) || x == y && read(a[size:]) < read(b[size:]) {
				copy(b[:2*size], a)
			}
		}
		return nil
	}
}

// reduceLocal implements MPI_Reduce_local(inbuf, inoutbuf, count, datatype, op). It applies the operation without
// communication.
func (a *args) reduceLocal() {
	r := a.reduction()
	n := a.elementCount(2)
	in, inout := a.bufferAt(0, n, r.elementType), a.bufferAt(1, n, r.elementType)
	a.checkDistinct(n)
	check(mpi.ReduceLocal(in, inout, r.op))
}
