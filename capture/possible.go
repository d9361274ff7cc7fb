package capture

import (
	"slices"
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
		o.State, o.Sends, o.Abandoned = handshake.WaitClear, true, f.last.isAbandoned() || f.back.last.isAbandoned()
		if other := f.back.msg; other != nil && other.state == requested {
			o.Asks, o.RetransmitsRequest = true, other.requests.n > 0
		}
	case cleared:
		o.State, peer = handshake.WaitData, f
		o.Long = o.Long || m.longest == 0 // only DATA says how long the message is
		o.Asks = m.lacksClear()
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
	if o.Heard == nil && o.Kind != state.KindSoftware { // nor is it known of which kind it is
		o.Kind = state.KindSoftware
		more, _ := infer.Explain(o)
		for _, p := range more {
			if !slices.Contains(left, p) {
				left = append(left, p)
			}
		}
	}
	return left
}

// crossing is for how long after CLEAR_TO_SEND a node that has it may send SEND_REQUEST again, as it was busy.
const crossing = 500 * time.Millisecond

// lacksClear reports whether the sender asks again although CLEAR_TO_SEND was recorded, and not because they crossed.
func (m *message) lacksClear() bool {
	return m.state == cleared && m.lost == "CLEAR_TO_SEND" && m.lastRequest.Sub(m.clear) > crossing
}

// isAbandoned reports whether a message was cleared, and has not ended.
func (m *message) isAbandoned() bool { return m != nil && !m.clear.IsZero() && !m.Complete }
