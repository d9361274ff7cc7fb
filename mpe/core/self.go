package core

import "math"

// maxEager is the maximum size of a message that a rank buffers when it sends to itself.
const maxEager = 64 << 10

// sendSelf sends a message to this rank.
func (x *matching) sendSelf(r *Request) error {
	in := x.inbounds.get()
	*in = inbound{
		source: x.c.rank, comm: r.comm, tag: r.tag, bytes: int64(len(r.buf)), room: math.MaxInt64,
		datatype: r.datatype, local: r,
	}
	in.phases.Start = r.posted
	r.in = in
	if err := x.arrive(in); err != nil {
		return ErrFull
	}
	if m := x.of(r.comm); in.local != nil && m.Unexpected() > x.ownLimit {
		m.RemoveUnexpected(in.handle)
		return ErrFull // the rest of the limit is reserved for peers
	}
	if in.local != nil && r.kind == OpSend && len(r.buf) <= maxEager {
		in.buf, in.own = x.c.buffers.get(len(r.buf)), true
		in.got = int64(copy(in.buf, r.buf))
		in.stored, in.arrived, in.local = in.got, true, nil
		x.c.finish(r, nil)
	}
	return nil
}

// joinSelf copies a message from this rank's send to its receive.
func (x *matching) joinSelf(in *inbound, r *Request) {
	s := in.local
	in.local = nil
	in.req, in.buf = r, r.buf
	in.phases.Data, in.arrived = x.c.at, true
	in.store(0, s.buf)
	x.c.finish(s, nil)
	x.deliver(in)
}
