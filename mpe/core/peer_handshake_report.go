package core

import (
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

func (l *handshakeLink) pendingLoad() (sends int, moving bool) {
	wait, _ := l.pair.SendWait()
	r, _ := l.pair.RecvWait()
	sends = l.sendQueue.len()
	if l.sending != nil && !l.pair.IsSendDetached() {
		sends++
	}
	return sends, sendTransfers(wait) || recvTransfers(r)
}

// sendTransfers reports whether a send's DATA may be in flight, so that only its ACK is missing.
func sendTransfers(w handshake.Wait) bool { return w.State == handshake.WaitAck }

// recvTransfers reports whether the sender of a receive's message is cleared, so that DATA may be in flight.
func recvTransfers(w handshake.Wait) bool {
	return w.State == handshake.WaitData || w.State == handshake.Receiving
}

func (l *handshakeLink) sendWaits(yield func(*Waiting) bool) {
	wait, ok := l.pair.SendWait()
	if !ok || l.pair.IsSendDetached() { // no caller waits for it
		return
	}
	waiting := Waiting{IsTransferring: sendTransfers(wait), peer: l.p, req: l.sending}
	waiting.Wait, waiting.Send = wait, true
	if !yield(&waiting) {
		return
	}
	waiting.IsTransferring = false
	for _, r := range l.sendQueue.items[l.sendQueue.head:] {
		waiting.Queued++
		waiting.req = r
		if !yield(&waiting) {
			return
		}
	}
}

func (l *handshakeLink) recvWaits(yield func(*Waiting) bool) {
	if wait, ok := l.pair.RecvWait(); ok {
		w := Waiting{IsTransferring: recvTransfers(wait), blocksPair: true, peer: l.p, req: l.receiving}
		w.Wait = wait
		yield(&w)
	}
}

// addCounters implements link. It counts DATA by datagrams, and not by messages as countSent does.
func (l *handshakeLink) addCounters(counters *state.PeerCounters) {
	p := l.p
	counters.PacketsOut = p.packetsOut
	for t, n := range p.packetsOut {
		counters.BytesOut[t] = n * protocol.HeaderLen
	}
	counters.PacketsOut[protocol.Data], counters.BytesOut[protocol.Data] = l.dataDatagrams, l.dataBytes
	counters.PacketsIn, counters.BytesIn = l.pair.ReceivedCounts()
	counters.Retransmissions, counters.Unreachable = p.events[state.EventRetransmitted]+p.events[state.EventReacked],
		l.unreachable
	counters.QueuedSends = l.sendQueue.len()
	if l.sending != nil && !l.pair.IsSendDetached() {
		counters.InFlight = 1
	}
	if w, ok := l.pair.SendWait(); ok && !l.pair.IsSendDetached() {
		keepOldest(p.e, &counters.OldestSend, w.For, w.Since)
	}
	if w, ok := l.pair.RecvWait(); ok && l.receiving != nil {
		counters.Receiving = 1
		keepOldest(p.e, &counters.OldestRecv, w.For, w.Since)
	}
}

func (l *handshakeLink) snapshot(s *state.Peer, now handshake.Instant) {
	if h, since, ok := l.pair.Deferred(); ok {
		s.Deferred = &state.Deferred{Call: state.CallOf(h.Call), Tag: h.Tag, Seconds: (now - since).Seconds()}
	}
	if h, since, ok := l.pair.UnansweredClear(); ok {
		s.UnansweredClear = &state.Deferred{Call: state.CallOf(h.Call), Tag: h.Tag, Seconds: (now - since).Seconds()}
	}
	if n, last := l.pair.LostAcks(); n > 0 {
		s.LostAcks = &state.LostAcks{Count: n, Seconds: (now - last).Seconds()}
	}
	s.Unfinished = l.unfinished()
	if err := l.pair.DeadEnd(); err != nil {
		s.Refuses = err.Cause.Error()
	}
}

// fillFacts copies those facts about the link that explain why an operation waits for the peer.
func (l *handshakeLink) fillFacts(facts *state.HandshakeFacts) {
	p := l.p
	facts.Profile, facts.Address, facts.HasReceived, facts.ForeignProfile = p.profile, p.cfg.Address, p.packetsIn > 0,
		l.foreignProfile
	facts.RequestsOnce = l.keeper != nil && p.cfg.Handshake.Peer.BlockingCalls
	facts.CanRevoke = p.cfg.Handshake.Peer.NumbersRequests
	facts.SendDiscarded = l.sending != nil && l.sending.dropsMessage
	if facts.Receiving = l.receiving != nil; facts.Receiving {
		facts.CurrentRecv, _ = l.pair.RecvWait()
		facts.RecvDiscarded = l.receiving.dropsMessage
	}
}
