package core

import (
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

func (l *handshakeLink) pendingLoad() (sends int, moving bool) {
	s, _ := l.pair.SendWait()
	r, _ := l.pair.RecvWait()
	sends = l.sendQueue.len()
	if l.sending != nil && !l.pair.IsSendDetached() {
		sends++
	}
	return sends, sendTransfers(s) || recvTransfers(r)
}

func sendTransfers(w handshake.Wait) bool { return w.State == handshake.WaitAck }

func recvTransfers(w handshake.Wait) bool {
	return w.State == handshake.WaitData || w.State == handshake.Receiving
}

func (l *handshakeLink) sendWaits(yield func(*Waiting) bool) {
	wait, ok := l.pair.SendWait()
	if !ok || l.pair.IsSendDetached() { // no caller waits for it
		return
	}
	w := Waiting{IsTransferring: sendTransfers(wait), peer: l.p, req: l.sending}
	w.Wait, w.Send = wait, true
	if !yield(&w) {
		return
	}
	w.IsTransferring = false
	for _, r := range l.sendQueue.items[l.sendQueue.head:] {
		w.Queued++
		w.req = r
		if !yield(&w) {
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

func (l *handshakeLink) addCounters(c *state.PeerCounters) {
	p := l.p
	c.PacketsOut = p.packetsOut
	for t, n := range p.packetsOut {
		c.BytesOut[t] = n * protocol.HeaderLen
	}
	c.PacketsOut[protocol.Data], c.BytesOut[protocol.Data] = l.dataDatagrams, l.dataBytes
	c.PacketsIn, c.BytesIn = l.pair.ReceivedCounts()
	c.Retransmissions, c.Unreachable = p.events[state.EventRetransmitted]+p.events[state.EventReacked], l.unreachable
	c.QueuedSends = l.sendQueue.len()
	if l.sending != nil && !l.pair.IsSendDetached() {
		c.InFlight = 1
	}
	if w, ok := l.pair.SendWait(); ok && !l.pair.IsSendDetached() {
		keepOldest(p.e, &c.OldestSend, w.For, w.Since)
	}
	if w, ok := l.pair.RecvWait(); ok && l.receiving != nil {
		keepOldest(p.e, &c.OldestRecv, w.For, w.Since)
	}
}

func (l *handshakeLink) snapshot(s *state.Peer, now handshake.Instant) {
	if h, since, ok := l.pair.Deferred(); ok {
		s.Deferred = &state.Deferred{Call: state.CallOf(h.Call), Tag: h.Tag, Seconds: (now - since).Seconds()}
	}
	if h, since, ok := l.pair.UnansweredClear(); ok {
		s.UnansweredClear = &state.Deferred{Call: state.CallOf(h.Call), Tag: h.Tag, Seconds: (now - since).Seconds()}
	}
	s.Unfinished = l.unfinished()
	if err := l.pair.DeadEnd(); err != nil {
		s.Refuses = err.Cause.Error()
	}
}

// fillFacts copies the facts that describe waits for the peer.
func (l *handshakeLink) fillFacts(f *state.HandshakeFacts) {
	p := l.p
	f.Profile, f.Address, f.HasReceived, f.ForeignProfile = p.profile, p.cfg.Address, p.packetsIn > 0, l.foreignProfile
	f.RequestsOnce = l.keeper != nil && p.cfg.Handshake.Peer.BlockingCalls
	f.CanRevoke = p.cfg.Handshake.Peer.NumbersRequests
	f.SendDiscarded = l.sending != nil && l.sending.dropsMessage
	if f.Receiving = l.receiving != nil; f.Receiving {
		f.CurrentRecv, _ = l.pair.RecvWait()
		f.RecvDiscarded = l.receiving.dropsMessage
	}
}
