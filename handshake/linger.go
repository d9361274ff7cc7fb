package handshake

// LingerUntil returns the time until which the peer may retransmit its last message because our ACK was lost. It
// returns false if there is no reason to wait: the peer is known to have the ACK, it has no retransmission left, the
// Pair would not send another ACK, or the ranks are on one host and nothing was lost between them.
//
// The peer's first timeout is assumed to be Timing.Ack.First or, if longer, AckRetransmit; its later timeouts follow
// Timing.Ack. Each retransmission shows that the peer has received no ACK so far, so LingerUntil then allows time for
// the next one, up to Timing.Ack.Retransmissions.
func (p *Pair) LingerUntil() (Instant, bool) {
	message := &p.lastReceived
	if !message.valid || message.ackConfirmed || p.deferred.valid || p.cfg.Reliable || p.cfg.Quirks.AckOnce ||
		p.cfg.SameHost && !p.lossy {
		return 0, false
	}
	b := p.cfg.Timing.Ack
	if message.reacksSent >= b.Retransmissions {
		return 0, false
	}
	b.First = max(b.First, p.cfg.Peer.AckRetransmit)
	d, _ := b.after(message.reacksSent)
	return message.ackedAt + d + p.cfg.Timing.FragmentGap, true
}
