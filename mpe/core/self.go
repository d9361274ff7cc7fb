package core

import "math"

// maxEager is the maximum length of a message to this rank itself that is buffered, in bytes.
const maxEager = 64 << 10

// sendSelf sends a message to this rank itself. A short one is buffered if no receive matches it.
func (x *matching) sendSelf(request *Request) error {
	in := x.inbounds.get()
	*in = inbound{
		source: x.core.rank, comm: request.comm, tag: request.tag, bytes: int64(len(request.buf)),
		clearedBytes: math.MaxInt64,
		datatype:     request.datatype, local: request,
	}
	in.phases.Start = request.posted
	request.inbound = in
	if err := x.arrive(in); err != nil {
		return ErrFull
	}
	if m := x.forComm(request.comm); in.local != nil && m.Unexpected() > x.selfLimit {
		m.RemoveUnexpected(in.handle)
		return ErrFull // the rest of the limit is reserved for peers
	}
	if in.local != nil && request.kind == OpSend && len(request.buf) <= maxEager {
		in.buf, in.ownsBuf = x.core.buffers.get(len(request.buf)), true
		in.highWater = int64(copy(in.buf, request.buf))
		in.storedBytes, in.isComplete, in.local = in.highWater, true, nil
		x.core.finish(request, nil)
	}
	return nil
}

// bindSelf copies a message from this rank's send to its receive.
func (x *matching) bindSelf(in *inbound, r *Request) {
	s := in.local
	in.local = nil
	in.recv, in.buf = r, r.buf
	in.phases.Data, in.isComplete = x.core.now, true
	in.store(0, s.buf)
	x.core.finish(s, nil)
	x.deliver(in)
}
