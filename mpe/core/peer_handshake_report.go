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
	w := Waiting{Wait: wait, Send: true, Moving: sendMoves(wait), peer: l.p, req: l.sending}
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
		yield(&Waiting{Wait: wait, Moving: recvMoves(wait), blocks: true, peer: l.p, req: l.recving})
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
}

func (l *handshakeLink) snapshot(s *state.Peer, now handshake.Instant) {
	if h, since, ok := l.pair.Deferred(); ok {
		s.Deferred = &state.Deferred{Call: state.CallOf(h.Call), Tag: h.Tag, Seconds: (now - since).Seconds()}
	}
	if h, since, ok := l.pair.UnansweredClear(); ok {
		s.UnansweredClear = &state.Deferred{Call: state.CallOf(h.Call), Tag: h.Tag, Seconds: (now - since).Seconds()}
	}
	s.Left = l.leftText()
	if err := l.pair.DeadEnd(); err != nil {
		s.Refuses = err.Cause.Error()
	}
}
