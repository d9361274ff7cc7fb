package mpe

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

func (l *handshakeLink) busy() bool {
	s, _ := l.pair.SendWait()
	r, _ := l.pair.RecvWait()
	return sendMoves(s) || recvMoves(r)
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

func (l *handshakeLink) explain(w *Waiting, now handshake.Instant) string {
	s := w.Describe(now) + l.silence(w)
	switch {
	case w.State == handshake.Held && l.recving != nil && l.recving.discards:
		return s + ", for an operation that was aborted: it is discarded"
	case w.Queued > 0 && l.sending != nil && l.sending.discards:
		return s + ", of a program that has ended"
	case !w.Posted:
		return s
	}
	if l.recving != nil { // the receive is behind that one
		ahead, _ := l.pair.RecvWait()
		if now == w.Since { // without ages
			now = ahead.Since
		}
		s = ahead.Describe(now)
		if l.recving.discards {
			s += ", for an operation that was aborted: it is discarded"
		}
		return s
	}
	return s
}

// silence says what is known of a peer whose packets do not arrive, or are of another profile.
func (l *handshakeLink) silence(w *Waiting) string {
	p := l.p
	switch {
	case l.foreign:
		return fmt.Sprintf("; rank %d sends packets of profile extended, and profile %v is configured for it here: give both sides the same profile", p.rank, l.profile())
	case p.packetsIn > 0 || p.cfg.Address == "" || w.State == handshake.Held:
		return ""
	case w.Send:
		return fmt.Sprintf("; no packet has ever come from %s: not running, other address, or firewall", p.cfg.Address)
	}
	s := "; no packet has ever come from " + p.cfg.Address
	if l.keeper != nil && p.cfg.Handshake.Peer.OneAtATime {
		s += fmt.Sprintf(". If rank %d asked to send before this process started, it asks no more: restart its role "+
			"or program", p.rank)
	}
	return s
}

func (l *handshakeLink) counters(c *PeerCounters) {
	p := l.p
	c.PacketsOut = p.packetsOut
	for t, n := range p.packetsOut {
		c.BytesOut[t] = n * protocol.HeaderLen
	}
	c.PacketsOut[protocol.Data], c.BytesOut[protocol.Data] = l.dataOut, l.dataBytes
	c.PacketsIn, c.BytesIn = l.pair.Received()
	c.Retransmissions, c.Unreachable = l.retransmissions(), l.unreachable
	c.QueuedSends = l.sendq.len()
	if l.sending != nil && !l.pair.SendLeft() {
		c.InFlight = 1
	}
}

func (l *handshakeLink) sends() int {
	if l.sending == nil || l.pair.SendLeft() {
		return l.sendq.len()
	}
	return l.sendq.len() + 1
}

func (l *handshakeLink) retransmissions() uint64 {
	return l.p.events[EventRetransmitted] + l.p.events[EventReacked]
}

func (l *handshakeLink) snapshot(s *PeerSnapshot, now handshake.Instant) {
	s.Retransmissions = l.retransmissions()
	if h, since, ok := l.pair.Deferred(); ok {
		s.Deferred = &DeferredSnapshot{Call: h.Call.String(), Tag: h.Tag, Seconds: (now - since).Seconds()}
	}
	if h, since, ok := l.pair.UnansweredClear(); ok {
		s.UnansweredClear = &DeferredSnapshot{Call: h.Call.String(), Tag: h.Tag, Seconds: (now - since).Seconds()}
	}
	s.Left = l.leftText()
	if err := l.pair.DeadEnd(); err != nil {
		s.Refuses = err.Cause.Error()
	}
}
