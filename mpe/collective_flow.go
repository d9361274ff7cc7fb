package mpe

import (
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// flow is a message that is sent on while it arrives: the Fwd of the engine in the
// source of coll's "atomic". Both halves are requests. The send is announced at once;
// the message before is let in when the next rank lets ours in; and what arrives may be
// sent as soon as it is there (E49).
type flow struct {
	// recv and send are the halves; nil when one has ended, or has not begun.
	recv, send *Request
	// later: the send begins when all is there. It is short, so it goes eagerly, and
	// its receiver has promised room for it.
	later bool
	// cleared: the next rank has sent CLEAR_TO_SEND. in is the message that waits for
	// that, or nil.
	cleared bool
	in      *inbound
	// ready is how many bytes may be sent, and piece how many more there must be for
	// the send to be continued.
	ready, piece int64
}

// forward begins a StepForward.
func (x *collectiveOp) forward(s *coll.Step, number int) error {
	buf, err := x.view(s.Into, s.Len)
	if err != nil {
		return err
	}
	from, to := x.e.peers[x.Members[s.Peer]], x.e.peers[x.Members[s.To]]
	if from.limits.NoComms || to.limits.NoComms {
		return errNoFlows
	}
	f := &flow{piece: int64(s.Piece)}
	f.recv = x.request(OpRecv, s.Peer, number, buf)
	f.recv.flow = f
	if to.goesEagerly(int64(s.Len)) {
		f.later = true
		return x.start(f.recv)
	}
	f.send = x.request(OpSend, s.To, number, buf)
	f.send.flow = f
	if err := x.start(f.send); err != nil {
		return err
	}
	return x.start(f.recv)
}

// half notes that a half of a flow has ended, and reports whether the step has.
func (x *collectiveOp) half(r *Request) bool {
	f := r.flow
	switch r {
	case f.recv:
		f.recv = nil
		if f.later {
			f.later = false
			x.sendOn(int(r.step))
			return false
		}
		if f.send != nil {
			x.e.flowed(f, int64(len(f.send.buf)), true)
		}
	case f.send:
		f.send = nil
	}
	return f.recv == nil && f.send == nil
}

// sendOn sends what has arrived whole.
func (x *collectiveOp) sendOn(number int) {
	s := x.progress.Step(number)
	buf, err := x.view(s.Into, s.Len)
	if err == nil {
		err = x.start(x.request(OpSend, s.To, number, buf))
	}
	if err != nil {
		x.fail(number, err)
	}
}

// flowed lets a flow's send go on, now that there are so many bytes, or all.
func (e *core) flowed(f *flow, bytes int64, all bool) {
	if !all && bytes < f.ready+f.piece {
		return
	}
	f.ready = bytes
	f.send.p.extend(f.send, bytes)
}

// arriving lets a flow's send go on with what has come of its message, up to the first
// gap.
func (e *core) arriving(in *inbound) {
	if f := in.req.flow; f.send != nil && in.stored == in.got {
		n := min(in.got, int64(len(in.buf)))
		e.flowed(f, n, n == int64(len(in.buf)))
	}
}

// waits reports whether a message that was announced has to wait, as its receive is the
// beginning of a flow that is not cleared yet.
func (r *Request) waits(in *inbound) bool {
	f := r.flow
	if f == nil || f.send == nil || f.cleared || in.eager {
		return false
	}
	f.in = in
	return true
}

// onClearToSend notes that the next rank has sent CLEAR_TO_SEND for what a flow sends.
func (e *core) onClearToSend(r *Request) {
	if r == nil || r.flow == nil {
		return
	}
	f := r.flow
	f.cleared = true
	if in := f.in; in != nil && f.recv != nil {
		f.in = nil
		e.clear(in, f.recv)
	}
}
