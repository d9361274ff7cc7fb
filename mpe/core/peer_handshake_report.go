package core

import (
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

func (l *handshakeLink) load() (sends int, moving bool) {
	s, _ := l.pair.SendWait()
	r, _ := l.pair.RecvWait()
	sends = l.sendq.len()
	if l.sending != nil && !l.pair.SendLeft() {
		sends++
	}
	return sends, sendMoves(s) || recvMoves(r)
}

func sendMoves(w handshake.Wait) bool { return w.State == handshake.WaitAck }

func recvMoves(w handshake.Wait) bool {
	return w.State == handshake.WaitData || w.State == handshake.Receiving
}

func (l *handshakeLink) sendWaits(yield func(*Waiting) bool) {
	wait, ok := l.pair.SendWait()
	if !ok || l.pair.SendLeft() { // no caller waits for it
		return
	}
	w := Waiting{Moving: sendMoves(wait), peer: l.p, req: l.sending}
	w.Wait, w.Send = wait, true
	if !yield(&w) {
		return
	}
	w.Moving = false
	for _, r := range l.sendq.items[l.sendq.head:] {
		w.Queued++
		w.req = r
		if !yield(&w) {
			return
		}
	}
}

func (l *handshakeLink) recvWaits(yield func(*Waiting) bool) {
	if wait, ok := l.pair.RecvWait(); ok {
		w := Waiting{Moving: recvMoves(wait), blocks: true, peer: l.p, req: l.recving}
		w.Wait = wait
		yield(&w)
	}
}

func (l *handshakeLink) counters(c *state.PeerCounters) {
	p := l.p
	c.PacketsOut = p.packetsOut
	for t, n := range p.packetsOut {
		c.BytesOut[t] = n * protocol.HeaderLen
	}
	c.PacketsOut[protocol.Data], c.BytesOut[protocol.Data] = l.dataOut, l.dataBytes
	c.PacketsIn, c.BytesIn = l.pair.Received()
	c.Retransmissions, c.Unreachable = p.events[state.EventRetransmitted]+p.events[state.EventReacked], l.unreachable
	c.QueuedSends = l.sendq.len()
	if l.sending != nil && !l.pair.SendLeft() {
		c.InFlight = 1
	}
	if w, ok := l.pair.SendWait(); ok && !l.pair.SendLeft() {
		older(p.e, &c.OldestSend, w.For, w.Since)
	}
	if w, ok := l.pair.RecvWait(); ok && l.recving != nil {
		older(p.e, &c.OldestRecv, w.For, w.Since)
	}
}

func (l *handshakeLink) snapshot(s *state.Peer, now handshake.Instant) {
	if h, since, ok := l.pair.Deferred(); ok {
		s.Deferred = &state.Deferred{Call: state.CallOf(h.Call), Tag: h.Tag, Seconds: (now - since).Seconds()}
	}
	if h, since, ok := l.pair.UnansweredClear(); ok {
		s.UnansweredClear = &state.Deferred{Call: state.CallOf(h.Call), Tag: h.Tag, Seconds: (now - since).Seconds()}
	}
	s.LeftOpen = l.leftOpen()
	if err := l.pair.DeadEnd(); err != nil {
		s.Refuses = err.Cause.Error()
	}
}

// collect copies the facts that describe waits for the peer.
func (l *handshakeLink) collect(f *state.HandshakeFacts) {
	p := l.p
	f.Profile, f.Address, f.Heard, f.Foreign = p.profile, p.cfg.Address, p.packetsIn > 0, l.foreign
	f.AsksOnce = l.keeper != nil && p.cfg.Handshake.Peer.OneAtATime
	f.Numbered = p.cfg.Handshake.Peer.Numbered
	f.SendDiscarded = l.sending != nil && l.sending.discards
	if f.Receiving = l.recving != nil; f.Receiving {
		f.Ahead, _ = l.pair.RecvWait()
		f.Discards = l.recving.discards
	}
}
