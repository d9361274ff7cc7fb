package handshake

// LingerUntil returns until when the peer may transmit its last message again because the ACK was lost, and false if
// it does not: it is known to have the ACK, or it retransmits nothing more, or no further ACK would be sent, or nothing was lost
// between these ranks of one host.
//
// The peer retransmits by the times of Timing.Ack, or AckRetransmit if that is longer than the first of them. Each retransmission
// shows that it has not had the ACKs so far, so the next one is awaited as well, up to the number that Timing.Ack has.
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
