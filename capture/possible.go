package capture

import (
	"time"

	"github.com/zrlmpi/zrlmpid/diagnosis/infer"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// longDatagram is the length in bytes of the longest datagram that every path carries (RFC 791).
const longDatagram = 548

// possible returns the possible causes of a wait according to one recording, which shows the packets sent but not
// whether they arrived. If several recordings show arrivals, their findings name the cause, and possible returns nil.
func (t *Tracker) possible(w wait) []infer.Possibility {
	m, f := w.m, w.f
	if t.joined {
		return nil
	}
	o := &infer.Observation{
		Waiter: w.Rank, Peer: w.Peer, Kind: state.KindCPU, Waited: t.now.Sub(w.Since).Seconds(),
		Worked: f.acked > 0 || f.back.acked > 0, Long: m.longest > longDatagram,
	}
	if t.ranks.node(w.from).insists { // no deployed node
		o.Kind = state.KindSoftware
	}
	peer := f.back // packets sent by the peer of the waiting sender
	switch m.state {
	case requested:
		o.State, o.Sends = handshake.WaitClear, true
		if other := f.back.msg; other != nil && other.state == requested {
			o.Asks, o.RetransmitsRequest = true, other.requests.n > 0
		}
	case cleared:
		o.State, peer = handshake.WaitData, f
		o.Asks = m.lost == "CLEAR_TO_SEND"
		o.RetransmitsRequest = o.Asks
	case receiving:
		o.State, peer = handshake.Receiving, f
	default:
		o.State, o.Sends = handshake.WaitAck, true
		o.Clears = m.lost == "DATA"
	}
	if !peer.heard.IsZero() {
		o.Heard = new(float64(t.now.Sub(peer.heard)) / float64(time.Second))
	}
	left, _ := infer.Explain(o)
	return left
}
