package mpi

import reduction "github.com/zrlmpi/zrlmpid/mpe/coll/op"

// ReduceLocal sets inout to in ∘ inout, element by element. It sends nothing (MPI_Reduce_local).
func ReduceLocal(in, inout Buffer, op Op) error {
	x := &collectiveCall{call: call{op: "ReduceLocal", peer: Undefined, tag: Undefined}, elem: typedBy(in.of, nil)}
	x.operation(op, &in, &inout)
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
