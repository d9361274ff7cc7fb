package capture

import (
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/diagnosis/infer"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// longDatagram is the length in bytes of the longest UDP payload that every path carries (RFC 791).
const longDatagram = 548

// possibleCauses returns the possible causes of a wait. A single recording shows which packets were sent, but not
// whether they arrived. Joined recordings show arrivals, so that the findings name the cause and possibleCauses returns
// nil.
func (t *Tracker) possibleCauses(w wait) []infer.Possibility {
	msg, f := w.msg, w.flow
	if t.isJoined {
		return nil
	}
	observation := &infer.Observation{
		Waiter: w.Rank, Peer: w.Peer, Kind: state.KindCPU, WaitSeconds: t.now.Sub(w.Since).Seconds(),
		HasWorked: f.ackedLen > 0 || f.reverse.ackedLen > 0, HasLongDatagram: msg.longestDatagram > longDatagram,
	}
	if t.ranks.node(w.peerAddr).keepsRequesting { // no deployed node
		observation.Kind = state.KindSoftware
	}
	peer := f.reverse // packets sent by the peer of the waiting sender
	switch msg.state {
	case requested:
		observation.State, observation.IsSender, observation.Abandoned = handshake.WaitClear, true,
			f.previous.isAbandoned() || f.reverse.previous.isAbandoned()
		if other := f.reverse.msg; other != nil && other.state == requested {
			observation.PeerAsks, observation.RetransmitsRequest = true, other.requestSends.n > 0
		}
	case cleared:
		observation.State, peer = handshake.WaitData, f
		// only DATA contains the length of the message
		observation.HasLongDatagram = observation.HasLongDatagram || msg.longestDatagram == 0
		observation.PeerAsks = msg.missedClear()
		observation.RetransmitsRequest = observation.PeerAsks
	case receiving:
		observation.State, peer = handshake.Receiving, f
	default:
		observation.State, observation.IsSender = handshake.WaitAck, true
		observation.PeerClears = msg.inferredLoss == "DATA"
	}
	if !peer.lastHeard.IsZero() {
		observation.LastHeard = new(float64(t.now.Sub(peer.lastHeard)) / float64(time.Second))
	}
	left, _ := infer.Explain(observation)
	if observation.LastHeard == nil && observation.Kind != state.KindSoftware { // the peer's kind is unknown as well
		observation.Kind = state.KindSoftware
		more, _ := infer.Explain(observation)
		for _, p := range more {
			if !slices.Contains(left, p) {
				left = append(left, p)
			}
		}
	}
	return left
}

// crossingWindow is the time after a CLEAR_TO_SEND within which a busy node that received it may still retransmit its
// SEND_REQUEST.
const crossingWindow = 500 * time.Millisecond

// missedClear reports whether the sender retransmits SEND_REQUEST so long after the recorded CLEAR_TO_SEND that the two
// packets cannot have crossed.
func (m *message) missedClear() bool {
	return m.state == cleared && m.inferredLoss == "CLEAR_TO_SEND" && m.lastRequest.Sub(m.clear) > crossingWindow
}

// isAbandoned reports whether a message received its CLEAR_TO_SEND but was never completed.
func (m *message) isAbandoned() bool { return m != nil && !m.clear.IsZero() && !m.Complete }
