package mpe

import (
	"errors"
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
	if !ok {
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
	if !w.Posted {
		return s
	}
	if l.recving != nil { // the receive is behind that one
		ahead, _ := l.pair.RecvWait()
		if now == w.Since { // without ages
			now = ahead.Since
		}
		return ahead.Describe(now)
	}
	var refused *handshake.PartialError
	if errors.As(l.pair.Refuses(), &refused) {
		s += fmt.Sprintf("; it may wait for rank %d, which sends it nothing more since it has not acknowledged %d words", w.Local, refused.Words)
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
	return "; no packet has ever come from " + p.cfg.Address
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
	if l.sending != nil {
		c.InFlight = 1
	}
}

func (l *handshakeLink) sends() int {
	if l.sending == nil {
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
	if err := l.pair.Refuses(); err != nil {
		s.Refuses = err.Error()
	}
}
