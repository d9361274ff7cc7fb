package handshake

// LingerUntil returns the time until which the peer may retransmit its last message because the ACK was lost. It
// returns false if the peer will not retransmit it: it is known to have the ACK, or it has no retransmission left, or
// we would not answer with another ACK, or nothing was lost between these ranks of one host.
//
// The peer retransmits by Timing.Ack, or after AckRetransmit if that is longer than the first time-out. Each
// retransmission shows that it did not receive the ACKs so far, so the next one is awaited as well, up to the number of
// retransmissions in Timing.Ack.
func (p *Pair) LingerUntil() (Instant, bool) {
	l := &p.last
	if !l.valid || l.known || p.deferred.valid || p.cfg.Reliable || p.cfg.Quirks.AckOnce || p.cfg.SameHost && !p.lossy {
		return 0, false
	}
	b := p.cfg.Timing.Ack
	if l.reacked >= b.Retransmissions {
		return 0, false
	}
	b.First = max(b.First, p.cfg.Peer.AckRetransmit)
	d, _ := b.after(l.reacked)
	return l.acked + d + p.cfg.Timing.FragmentGap, true
}
