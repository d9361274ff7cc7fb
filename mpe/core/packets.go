package core

import (
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/protocol"
)

const (
	// packetBatchLen is how many packets are handed to a transport at a time, at most.
	packetBatchLen = 64
	// batchBytes is the payload in bytes from which they are handed over: the
	// network has something to do while the checksums of the next are computed.
	batchBytes = 256 << 10
	// streamBatchBytes is the same for a stream without such checksums: the kernel takes less
	// time for one long write than for several.
	streamBatchBytes = packetBatchLen * protocol.MaxStreamPayload
)

// packetBatch has the packets of the extended profile that wait to be sent to the peer
// at hand.
type packetBatch struct {
	packets [packetBatchLen]Packet
	n       int // of them, with so many bytes of payload:
	bytes   int
}

// transmit puts a packet into the batch, and what it is about at the
// transport's disposal: its payload, or all of a message that it announces.
func (l *extendedLink) transmit(act *extended.Action) {
	if act.ID == 0 {
		l.packet(&act.Header, nil)
		return
	}
	o := l.outs.at(act.ID)
	o.sent(&act.Header, act.Length, l.p.e.at)
	if act.Header.Type == protocol.SendRequest && o.req != nil && o.req.rest != 0 {
		l.announced = append(l.announced, o.req.rest)
	}
	if l.memory != nil && l.transmitShort(&act.Header, o.buf[act.Offset:act.Offset+act.Length]) {
		return
	}
	pk := l.packet(&act.Header, o.buf[act.Offset:act.Offset+act.Length])
	if act.Header.Flags&protocol.FlagRetransmit != 0 {
		pk.Fragment = l.discovers && act.Length > int64(l.conn.Payload())
	}
	if l.memory != nil && act.Header.Flags&protocol.FlagEager == 0 {
		o.advertised, pk.Exposed = true, uint64(act.ID)
		// The peer would keep all that it knows of an advertised one, and there may be millions that rest.
		if act.Header.Type == protocol.SendRequest && !o.flowing && (o.req == nil || !o.req.MayRest) {
			pk.Advertised = o.buf
		}
	}
	if l.p.e.conns.batch.bytes >= l.batchBytes {
		l.sendBatch()
	}
}

// packet puts a packet into the batch, and returns it.
func (l *extendedLink) packet(h *protocol.ExtHeader, payload []byte) *Packet {
	b := &l.p.e.conns.batch
	if b.n == len(b.packets) {
		l.sendBatch()
	}
	pk := &b.packets[b.n]
	b.n++
	protocol.PutExtended(pk.Header[:], h, payload)
	pk.Payload, pk.Advertised, pk.Fragment, pk.Exposed = payload, nil, false, 0
	l.p.sent(h.Type, protocol.ExtHeaderLen+len(payload))
	l.p.record(true, protocol.ExtHeaderLen+len(payload), pk.Header[:], payload)
	b.bytes += len(payload)
	return pk
}

// sendBatch sends the batch. What a network refuses it has lost: packets are
// retransmitted until they are acknowledged, and the error is kept to explain why
// that does not happen.
func (l *extendedLink) sendBatch() {
	b := &l.p.e.conns.batch
	if b.n == 0 {
		return
	}
	tooLong, err := l.p.e.effects.Packets(l.p.rank, b.packets[:b.n])
	for i := range b.packets[:b.n] {
		b.packets[i].Payload, b.packets[i].Advertised = nil, nil
	}
	b.n, b.bytes = 0, 0
	l.p.sendResult(err)
	if l.discovers && tooLong {
		l.askLink()
	}
}

// A program that posts many sends in a row has them go out together: one system
// call for several packets, which the kernel may even carry as one.

const (
	// coalesceAfter is how many sends to a peer go out at once, each by itself, before
	// others are coalesced. A program that posts a few and then computes for
	// long has them all on their way.
	coalesceAfter = 4
	// coalesceMost is how many are coalesced at most.
	coalesceMost = 16
	// coalesceTime is how long a send is held back where nothing else happens.
	// That is rare: a caller that posts so many soon waits, tests, or gets an answer.
	coalesceTime = time.Millisecond
)

// coalesce reports whether the packets of the send that was just posted may wait for
// those of further sends. The next flush sends them.
func (l *extendedLink) coalesce() bool {
	p := l.p
	p.burst++
	if p.burst <= coalesceAfter || (p.burst-coalesceAfter)%coalesceMost == 0 {
		return false
	}
	e := p.e
	if !e.pending.coalesced {
		e.pending.coalesced = true
		e.due = min(e.due, e.at+coalesceTime)
	}
	return true // the peer is touched
}

// FlushCoalesced sends what was coalesced.
func (e *Core) FlushCoalesced() {
	for _, p := range e.pending.touched {
		p.burst = 0
	}
	e.flush()
}
