package core

import (
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/protocol"
)

const (
	// packetBatchLen is the maximum number of packets handed to a transport at a time.
	packetBatchLen = 64
	// batchBytes is the amount of payload, in bytes, at which a batch is handed to the transport before it is full, so
	// that the network transmits while the engine computes the checksums of the next packets.
	batchBytes = 256 << 10
	// streamBatchBytes replaces batchBytes for streams without payload checksums, where one long write takes less time
	// than several short ones.
	streamBatchBytes = packetBatchLen * protocol.MaxStreamPayload
)

// packetBatch holds outgoing packets of the extended profile to the current peer.
type packetBatch struct {
	packets [packetBatchLen]Packet
	n       int // number of packets; bytes is the size of their payload
	bytes   int
}

// transmit adds a packet to the batch, or sends it at once if its header can be short. The transport gets access to the
// packet's payload, or to the whole message that the packet announces.
func (l *extendedLink) transmit(act *extended.Action) {
	if act.ID == 0 {
		l.addPacket(&act.Header, nil)
		return
	}
	message := l.outbox.find(act.ID)
	message.noteSent(&act.Header, act.Length, l.p.e.now)
	if act.Header.Type == protocol.SendRequest && message.request != nil && message.request.restRef != 0 {
		l.announced = append(l.announced, message.request.restRef)
	}
	if l.memory != nil && l.transmitShort(&act.Header, message.buf[act.Offset:act.Offset+act.Length]) {
		return
	}
	pk := l.addPacket(&act.Header, message.buf[act.Offset:act.Offset+act.Length])
	if act.Header.Flags&protocol.FlagRetransmit != 0 {
		pk.Fragment = l.discovers && act.Length > int64(l.conn.Payload())
	}
	if l.memory != nil && act.Header.Flags&protocol.FlagEager == 0 {
		message.advertised, pk.Exposed = true, uint64(act.ID)
		// Do not advertise sends that may rest: the peer keeps a full record of each advertised message, and a program
		// may have millions of resting sends.
		if act.Header.Type == protocol.SendRequest && !message.forwarded &&
			(message.request == nil || !message.request.MayRest) {
			pk.Advertised = message.buf
		}
	}
	if l.p.e.connActions.batch.bytes >= l.batchBytes {
		l.sendBatch()
	}
}

// addPacket adds a packet to the batch, and returns it.
func (l *extendedLink) addPacket(header *protocol.ExtHeader, payload []byte) *Packet {
	batch := &l.p.e.connActions.batch
	if batch.n == len(batch.packets) {
		l.sendBatch()
	}
	pk := &batch.packets[batch.n]
	batch.n++
	protocol.PutExtended(pk.Header[:], header, payload)
	pk.Payload, pk.Advertised, pk.Fragment, pk.Exposed = payload, nil, false, 0
	l.p.countSent(header.Type, protocol.ExtHeaderLen+len(payload))
	l.p.record(true, protocol.ExtHeaderLen+len(payload), pk.Header[:], payload)
	batch.bytes += len(payload)
	return pk
}

// sendBatch sends the batch. Packets that the network refuses count as lost, and are retransmitted. sendBatch records
// the network's error, which may later explain a missing acknowledgement.
func (l *extendedLink) sendBatch() {
	batch := &l.p.e.connActions.batch
	if batch.n == 0 {
		return
	}
	tooLong, err := l.p.e.effects.SendPackets(l.p.rank, batch.packets[:batch.n])
	for i := range batch.packets[:batch.n] {
		batch.packets[i].Payload, batch.packets[i].Advertised = nil, nil
	}
	batch.n, batch.bytes = 0, 0
	l.p.sendResult(err)
	if l.discovers && tooLong {
		l.askLink()
	}
}

// Coalescing transmits consecutive sends of a program together, with one system call for several packets, which the
// kernel may even combine.

const (
	// coalesceAfter is the number of consecutive sends to a peer that are transmitted individually before coalescing
	// starts. The sends of a program that posts only a few, and then computes for a long time, are thus in flight
	// meanwhile.
	coalesceAfter = 4
	// maxCoalesced is the maximum number of sends that are transmitted together.
	maxCoalesced = 16
	// coalesceTime is the maximum time that a send is held back. It rarely elapses: a caller that posts many sends soon
	// waits or tests, or receives an answer, which flushes the sends.
	coalesceTime = time.Millisecond
)

// coalesce reports whether to hold back the packets of the send just posted until the next flush, to transmit them
// together with packets of later sends.
func (l *extendedLink) coalesce() bool {
	p := l.p
	p.burstLen++
	if p.burstLen <= coalesceAfter || (p.burstLen-coalesceAfter)%maxCoalesced == 0 {
		return false
	}
	e := p.e
	if !e.pending.coalesced {
		e.pending.coalesced = true
		e.tickDue = min(e.tickDue, e.now+coalesceTime)
	}
	return true // the peer is touched
}

// FlushCoalesced sends the coalesced packets.
func (e *Core) FlushCoalesced() {
	for _, p := range e.pending.touched {
		p.burstLen = 0
	}
	e.flush()
}
