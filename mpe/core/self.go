package core

import "math"

// maxEager bounds what a rank buffers of a message to itself.
const maxEager = 64 << 10

// sendSelf sends a message to this rank.
func (e *Core) sendSelf(r *Request) error {
	in := e.inbounds.get()
	*in = inbound{
		source: e.rank, comm: r.comm, tag: r.tag, bytes: int64(len(r.buf)), room: math.MaxInt64,
		datatype: r.datatype, local: r,
	}
	in.phases.Start = r.posted
	r.in = in
	if err := e.arrive(in); err != nil {
		return ErrFull
	}
	if m := e.matchers.of(r.comm); in.local != nil && m.Unexpected() > e.matchers.ownLimit {
		m.RemoveUnexpected(in.handle)
		return ErrFull // the rest of the room is the peers'
	}
	if in.local != nil && r.kind == OpSend && len(r.buf) <= maxEager {
		in.buf, in.own = e.buffers.get(len(r.buf)), true
		in.got = int64(copy(in.buf, r.buf))
		in.stored, in.arrived, in.local = in.got, true, nil
		e.finish(r, nil)
	}
	return nil
}

// joinSelf moves a message from this rank's send to its receive.
func (e *Core) joinSelf(in *inbound, r *Request) {
	s := in.local
	in.local = nil
	in.req, in.buf = r, r.buf
	in.phases.Data, in.arrived = e.at, true
	in.store(0, s.buf)
	e.finish(s, nil)
	e.deliver(in)
}
