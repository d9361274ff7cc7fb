package core

import "github.com/zrlmpi/zrlmpid/mpe/collective"

// flow is a message that is sent on while it arrives: the Fwd of the engine in the
// source of coll's "atomic". Both halves are requests. The send is announced at once;
// the message before is let in when the next rank lets ours in; and what arrives may be
// sent as soon as it is there (E49).
type flow struct {
	// recv and send are the halves; nil when one has ended.
	recv, send *Request
	// cleared: the next rank has sent CLEAR_TO_SEND. in is the message that waits for
	// that, or nil.
	cleared bool
	in      *inbound
	// ready is how many bytes may be sent, and piece how many more there must be for
	// the send to be continued.
	ready, piece int64
}

// Forward posts both halves. A short message goes eagerly, as its receiver has promised room
// for it.
func (e callEngine) Forward(recv, send *collective.Message) (later bool, err error) {
	if x := e.peers[send.Peer].extended; x != nil && x.conn.Short(int64(len(send.Buf))) {
		return true, e.Start(recv)
	}
	f := &flow{piece: int64(recv.Piece)}
	f.recv, f.send = e.message(recv), e.message(send)
	f.recv.flow, f.send.flow = f, f
	if err := e.startMessage(f.send); err != nil {
		return false, err
	}
	return false, e.startMessage(f.recv)
}

// flowEnded lets a flow's send go on when all has arrived.
func flowEnded(r *Request) {
	f := r.flow
	switch {
	case f == nil:
	case r == f.send:
		f.send = nil
	default:
		f.recv = nil
		if f.send != nil && r.Err == nil && r.Status.Bytes == int64(len(f.send.buf)) {
			flowed(f, r.Status.Bytes, true)
		}
	}
}

// flowed lets a flow's send go on, now that there are so many bytes, or all.
func flowed(f *flow, bytes int64, all bool) {
	if !all && bytes < f.ready+f.piece {
		return
	}
	f.ready = bytes
	f.send.p.extended.machine().Ready(f.send.out, bytes)
}

// arriving lets a flow's send go on with what has come of its message, up to the first
// gap.
func arriving(in *inbound) {
	if f := in.req.flow; f.send != nil && in.stored == in.got {
		n := min(in.got, int64(len(in.buf)))
		flowed(f, n, n == int64(len(in.buf)))
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
func onClearToSend(e *Core, r *Request) {
	if r == nil || r.flow == nil {
		return
	}
	f := r.flow
	f.cleared = true
	if in := f.in; in != nil && f.recv != nil {
		f.in = nil
		e.matching.accept(in, f.recv)
	}
}
