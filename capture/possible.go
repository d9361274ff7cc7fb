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

// possible returns the possible causes of a wait. A single recording shows which packets were sent but not whether they
// arrived. If several recordings show arrivals, the findings name the cause and possible returns nil.
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
		o.Long = o.Long || m.longest == 0 // only DATA contains the length of the message
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
	if o.Heard == nil && o.Kind != state.KindSoftware { // the peer's kind is unknown as well
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

// crossing is the time after CLEAR_TO_SEND within which a busy node that has received it may still retransmit
// SEND_REQUEST.
const crossing = 500 * time.Millisecond

// lacksClear reports whether the sender retransmits SEND_REQUEST although CLEAR_TO_SEND was recorded, and so late that
// the two cannot have crossed.
func (m *message) lacksClear() bool {
	return m.state == cleared && m.lost == "CLEAR_TO_SEND" && m.lastRequest.Sub(m.clear) > crossing
}

// isAbandoned reports whether a message was cleared but is not complete.
func (m *message) isAbandoned() bool { return m != nil && !m.clear.IsZero() && !m.Complete }
