package core

import "github.com/zrlmpi/zrlmpid/mpe/collective"

// flow is a message forwarded while it arrives, like Fwd in the paper that describes the algorithm "atomic" of package
// coll. It consists of two requests: a receive from the previous rank, and a send to the next rank. The send is
// announced immediately. This rank clears the previous rank to send only after the next rank has cleared this rank.
// Bytes may be forwarded as soon as they are received (E49).
type flow struct {
	// recv and send are the two requests; each is set to nil when it completes.
	recv, send *Request
	// cleared means that the next rank has sent CLEAR_TO_SEND. Until then, pendingMessage holds the message that recv
	// has matched, or nil.
	cleared        bool
	pendingMessage *inbound
	// readyBytes is the number of bytes that the send may transmit. It advances in steps of at least minPiece bytes.
	readyBytes, minPiece int64
}

// Forward posts the receive and the send of a flow. If the message can be sent eagerly, Forward posts only the receive
// and returns later = true: the caller then sends the message once it is complete, without an announcement, because its
// receiver has promised memory for it.
func (e callEngine) Forward(recv, send *collective.Message) (later bool, err error) {
	if x := e.peers.at(send.Peer).extended; x != nil && x.conn.FitsEager(int64(len(send.Buf))) {
		return true, e.Start(recv)
	}
	f := &flow{minPiece: int64(recv.Piece)}
	f.recv, f.send = e.newMessage(recv), e.newMessage(send)
	f.recv.flow, f.send.flow = f, f
	if err := e.startMessage(f.send); err != nil {
		return false, err
	}
	return false, e.startMessage(f.recv)
}

// onFlowEnded continues the send of a flow when the flow's receive is complete.
func onFlowEnded(request *Request) {
	f := request.flow
	switch {
	case f == nil:
	case request == f.send:
		f.send = nil
	default:
		f.recv = nil
		if f.send != nil && request.Err == nil && request.Status.Bytes == int64(len(f.send.buf)) {
			advanceFlow(f, request.Status.Bytes, true)
		}
	}
}

// advanceFlow continues the send of a flow when enough further bytes, or all bytes, have been received.
func advanceFlow(f *flow, bytes int64, all bool) {
	if !all && bytes < f.readyBytes+f.minPiece {
		return
	}
	f.readyBytes = bytes
	f.send.p.extended.touchedConn().SetReady(f.send.sendID, bytes)
}

// onFlowData continues the send of a flow with the contiguous bytes received so far.
func onFlowData(in *inbound) {
	if f := in.recv.flow; f.send != nil && in.storedBytes == in.highWater {
		n := min(in.highWater, int64(len(in.buf)))
		advanceFlow(f, n, n == int64(len(in.buf)))
	}
}

// mustWait reports whether the sender of an announced message must not be cleared yet, because the receive belongs to a
// flow whose send has not been cleared. It then stores the message in the flow.
func (r *Request) mustWait(in *inbound) bool {
	f := r.flow
	if f == nil || f.send == nil || f.cleared || in.eager {
		return false
	}
	f.pendingMessage = in
	return true
}

// onClearToSend handles CLEAR_TO_SEND for a flow's send: it clears the sender of the message that waits for it.
func onClearToSend(core *Core, r *Request) {
	if r == nil || r.flow == nil {
		return
	}
	f := r.flow
	f.cleared = true
	if in := f.pendingMessage; in != nil && f.recv != nil {
		f.pendingMessage = nil
		core.matching.accept(in, f.recv)
	}
}
