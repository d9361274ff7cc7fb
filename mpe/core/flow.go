package core

import "github.com/zrlmpi/zrlmpid/mpe/collective"

// flow is a message that is forwarded while it arrives, like Fwd in the paper that describes the algorithm "atomic"
// of package coll. It consists of two requests: a receive from the previous rank, and a send to the next. The send
// is announced immediately. The previous rank is not cleared to send until the next rank has cleared this one.
// Bytes may be forwarded as soon as they are received (E49).
type flow struct {
	// recv and send are the two requests; each is nil after its end.
	recv, send *Request
	// cleared means that the next rank has sent CLEAR_TO_SEND. in is the message of recv that waits until then, or
	// nil.
	cleared bool
	in      *inbound
	// ready is the number of bytes that may be sent. The send continues when at least piece further bytes have
	// arrived.
	ready, piece int64
}

// Forward posts the receive and the send of a flow. If the message is short, Forward posts only the receive and
// returns later = true: the message is sent eagerly afterwards, because its receiver has promised memory for it.
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

// flowEnded continues a flow's send when its receive is complete.
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

// flowed continues a flow's send when enough further bytes, or all bytes, have arrived.
func flowed(f *flow, bytes int64, all bool) {
	if !all && bytes < f.ready+f.piece {
		return
	}
	f.ready = bytes
	f.send.p.extended.machine().Ready(f.send.out, bytes)
}

// arriving continues a flow's send with the contiguous bytes received so far.
func arriving(in *inbound) {
	if f := in.req.flow; f.send != nil && in.stored == in.got {
		n := min(in.got, int64(len(in.buf)))
		flowed(f, n, n == int64(len(in.buf)))
	}
}

// waits reports whether an announced message has to wait because its receive belongs to a flow whose send has not
// been cleared yet.
func (r *Request) waits(in *inbound) bool {
	f := r.flow
	if f == nil || f.send == nil || f.cleared || in.eager {
		return false
	}
	f.in = in
	return true
}

// onClearToSend notes that the next rank has sent CLEAR_TO_SEND for a flow's send.
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
