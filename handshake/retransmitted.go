package handshake

import (
	"hash/crc32"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// unsolicitedData handles DATA that arrives although no CLEAR_TO_SEND is pending. The parameter rest is the number of
// bytes of the message that follow this datagram.
func (p *Pair) unsolicitedData(
	now Instant, header protocol.Header, payload []byte, rest int64, streamed bool, acts []Action,
) []Action {
	p.dropOffer()
	same := p.equalsLast(header, payload) || streamed && p.lastReceived.valid && p.lastReceived.call == header.Call &&
		p.lastReceived.size == header.Size
	if streamed || rest > 0 {
		p.discardBytes, p.discardUntil = rest, now+p.cfg.Timing.FragmentGap
	}
	if n := p.numbers.revokedClear; n > 0 {
		// Its CLEAR_TO_SEND was revoked.
		acts = append(acts, Action{Kind: Drop, Reason: ReasonUnsolicited, Header: header})
		return p.transmitRevocation(protocol.ClearToSend, n-1, header.Tag, acts)
	}
	if !same || p.deferred.valid && p.deferred.header.Type == protocol.SendRequest {
		if !streamed && !p.deferred.valid {
			acts = p.onSecondData(now, fingerprint{call: header.Call, size: header.Size, sum: checksum(payload)}, header, acts)
		}
		// Otherwise, the peer has sent a SEND_REQUEST since, and has taken a stale CLEAR_TO_SEND for the answer. This
		// DATA is then a new message.
		return append(acts, Action{Kind: Drop, Reason: ReasonUnsolicited, Header: header})
	}
	acts = append(acts, Action{Kind: Drop, Reason: ReasonDuplicate, Header: header})
	if p.cfg.Quirks.AckOnce || p.lastReceived.earlyData.armed {
		return acts
	}
	p.lastReceived.ackedAt, p.lastReceived.earlyData = now, timerAfter(now, p.ackLost())
	p.lastReceived.reacksSent++
	p.lossy = true
	if e := p.inherited; e != nil && e.saved.In.Progress == Acknowledged {
		e.saved.In = SavedMessage{} // this is the ACK that it waits for
	}
	ack := p.header(protocol.Ack, header.Call.Counterpart(), 0, header.Tag)
	return append(acts,
		Action{Kind: Transmit, Header: ack},
		Action{Kind: Note, Event: Reacked, Header: ack})
}

// equalsLast reports whether the given DATA has the same content as the last message received.
func (p *Pair) equalsLast(h protocol.Header, payload []byte) bool {
	return p.lastReceived.valid && p.lastReceived.call == h.Call && p.lastReceived.size == h.Size &&
		p.lastReceived.sum == checksum(payload)
}

// ackLost returns the time after which retransmitted DATA shows that our ACK was lost. It is a tenth shorter than the
// peer's timeout, to allow for clock differences and the transit of the ACK.
func (p *Pair) ackLost() Instant {
	if p.cfg.Reliable {
		return 0
	}
	return p.cfg.Peer.AckRetransmit * 9 / 10
}

// isRetransmission reports whether a datagram with a DATA header that arrives in the middle of a message equals the
// first datagram of that message. If so, it is a retransmission rather than payload that resembles a header.
func (p *Pair) isRetransmission(h protocol.Header, payload []byte) bool {
	return h.Size == p.recv.size && h.Call == p.recv.call && checksum(payload) == p.recv.sum
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the checksum of b, which is the payload in the first datagram of a message.
func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }
