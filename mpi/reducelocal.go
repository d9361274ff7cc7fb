package mpi

import reduction "github.com/zrlmpi/zrlmpid/mpe/coll/op"

// ReduceLocal sets inout to in ∘ inout, element by element. It sends nothing (MPI_Reduce_local).
func ReduceLocal(in, inout Buffer, op Op) error {
	x := &collectiveCall{call: call{op: "ReduceLocal", peer: Undefined, tag: Undefined}, elem: elementOf(in.datatype, nil)}
	x.setOperation(op, &in, &inout)
	a, b := x.contiguousBytes(&in, true, false), x.contiguousBytes(&inout, true, true)
	if x.err == nil && len(a) != len(b) {
		x.recordError(ErrCount, "in has %d bytes and inout %d", len(a), len(b))
	}
	if x.err != nil {
		return x.err
	}
	if x.devOp.User != nil {
		if err := x.devOp.User(a, b); err != nil {
			return x.call.error(ErrOther, err)
		}
	} else {
		f, err := reduction.Lookup(x.devOp.Op, x.devOp.Type)
		if err != nil {
			return x.call.error(ErrOp, err)
		}
		f(b, a, b)
	}
	x.unpackReceived()
	return nil
}
