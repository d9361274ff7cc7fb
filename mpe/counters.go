package mpe

import (
	"errors"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// NumTypes is the length of tables indexed by protocol.Type.
const NumTypes = handshake.NumTypes

// RankCounters are an engine's counters that belong to no peer in particular. They
// count since New.
type RankCounters struct {
	Rank int
	// Posted and Unexpected are the depths of the matching queues now, of all
	// communicators.
	Posted, Unexpected int
	// AnySource is the oldest receive from any source that waits.
	AnySource OldestWait
	// Drops counts what came from addresses that are no rank's.
	Drops [handshake.NumReasons]uint64
	// Collectives counts collective calls, and Disagreements the communicators whose
	// members do not choose algorithms alike.
	Collectives   []CollectiveCount
	Disagreements uint64
}

// PeerCounters are an engine's counters of one peer. They count since New.
type PeerCounters struct {
	Rank int
	// Extended: the peer's profile is extended.
	Extended bool
	// Sent and Received count messages that ended well, and SentBytes and
	// ReceivedBytes their payload. Failed counts the others; a message that is
	// longer than its receive is received, and fails.
	Sent, Received, Failed   uint64
	SentBytes, ReceivedBytes uint64
	// PacketsOut and PacketsIn count datagrams, or packets where the transport
	// is a stream, by type; BytesOut and BytesIn the bytes in them, headers of
	// the protocol included. What came and was no packet is in Drops only.
	PacketsOut, PacketsIn [NumTypes]uint64
	BytesOut, BytesIn     [NumTypes]uint64
	// Repeats counts packets that were sent again; all of a DATA message of a
	// handshake is one. Unreachable counts messages, and links of the extended
	// profile, that were given up because the peer did not answer.
	Retransmissions, Unreachable uint64
	// Drops and Events are the handshake's; an extended peer has its own besides.
	Drops          [handshake.NumReasons]uint64
	Events         [handshake.NumEvents]uint64
	ExtendedDrops  [extended.NumReasons]uint64
	ExtendedEvents [extended.NumEvents]uint64

	// How things stand now. QueuedSends are sends of which nothing was sent,
	// InFlight the others that have not ended; InFlightPackets are those of an
	// extended peer that are not acknowledged, and RoundTrip its smoothed round
	// trip, 0 before the first.
	QueuedSends, InFlight, InFlightPackets int
	RoundTrip                              time.Duration
	// OldestSend and OldestRecv are the oldest messages that wait.
	OldestSend, OldestRecv OldestWait
}

// OldestWait is for how long the oldest message of its kind has been waiting.
type OldestWait struct {
	// Waits: there is one.
	Waits bool
	// For is the packet that it waits for; 0 if it is held back behind others.
	For     protocol.Type
	Elapsed time.Duration
}

// oldestPosted is how many posted receives of a communicator are looked at, from
// the oldest on, to find the oldest of each source. There may be a million.
const oldestPosted = 1024

// Counters calls rank once and then peer for every peer, each time with the
// engine's lock: what its Observer has noted does not change meanwhile. They must
// be quick, must not call the engine, and must not keep what they are given.
func (e *Engine) Counters(rank func(*RankCounters), peer func(*PeerCounters)) {
	posted := make([]handshake.Instant, len(e.peers)) // 0: none
	var rc RankCounters
	e.lock()
	e.rankCounters(&rc, posted)
	rank(&rc)
	e.mu.Unlock()
	var pc PeerCounters
	for i, p := range e.peers {
		if p == nil {
			continue
		}
		e.lock()
		e.peerCounters(&pc, p)
		if !pc.OldestRecv.Waits && posted[i] != 0 {
			pc.OldestRecv = OldestWait{Waits: true, For: protocol.SendRequest, Elapsed: e.at - posted[i]}
		}
		peer(&pc)
		e.mu.Unlock()
	}
}

// PeerCounters calls visit for one peer as Counters does, unless there is none of that
// rank. The oldest receive is of those only that a message has matched.
func (e *Engine) PeerCounters(rank int, visit func(*PeerCounters)) {
	if rank < 0 || rank >= len(e.peers) || e.peers[rank] == nil {
		return
	}
	var pc PeerCounters
	e.lock()
	defer e.unlock()
	e.peerCounters(&pc, e.peers[rank])
	visit(&pc)
}

func (e *Engine) rankCounters(c *RankCounters, posted []handshake.Instant) {
	*c = RankCounters{Rank: e.rank, Drops: e.drops, Collectives: e.collectiveCounts(), Disagreements: e.disagreements}
	anySource := handshake.Instant(0)
	for _, m := range e.comms {
		c.Posted += m.Posted()
		c.Unexpected += m.Unexpected()
		looks := 0
		m.EachPosted(func(_, _ int32, r *Request) bool {
			oldest := &anySource
			if r.peer >= 0 {
				oldest = &posted[r.peer]
			}
			if *oldest == 0 || r.posted < *oldest {
				*oldest = max(r.posted, 1)
			}
			looks++
			return looks < oldestPosted
		})
	}
	if anySource != 0 {
		c.AnySource = OldestWait{Waits: true, For: protocol.SendRequest, Elapsed: e.at - anySource}
	}
}

func (e *Engine) peerCounters(c *PeerCounters, p *peer) {
	*c = PeerCounters{
		Rank: p.rank, Extended: p.conn != nil, Sent: p.sendsDone, Received: p.recvsDone, Failed: p.failures,
		SentBytes: p.sentBytes, ReceivedBytes: p.recvBytes, Unreachable: p.giveUps,
		Drops: p.drops, Events: p.events, ExtendedDrops: p.extDrops, ExtendedEvents: p.extEvents,
	}
	if p.conn != nil {
		e.extendedCounters(c, p)
		return
	}
	c.PacketsOut = p.packetsOut
	for t, n := range p.packetsOut {
		c.BytesOut[t] = n * protocol.HeaderLen
	}
	c.PacketsOut[protocol.Data], c.BytesOut[protocol.Data] = p.dataOut, p.dataBytes
	c.PacketsIn, c.BytesIn = p.pair.Received()
	c.Retransmissions = p.events[handshake.Retransmitted] + p.events[handshake.Reacked]
	c.QueuedSends = p.sendq.len()
	if p.sending != nil {
		c.InFlight = 1
	}
	if w, ok := p.pair.SendWait(); ok {
		c.OldestSend = OldestWait{Waits: true, For: w.For, Elapsed: e.at - w.Since}
	}
	if w, ok := p.pair.RecvWait(); ok {
		c.OldestRecv = OldestWait{Waits: true, For: w.For, Elapsed: e.at - w.Since}
	}
}

func (e *Engine) extendedCounters(c *PeerCounters, p *peer) {
	st := p.conn.Stats()
	c.PacketsOut, c.PacketsIn = st.PacketsSent, st.PacketsReceived
	for t := range NumTypes {
		c.BytesOut[t] = st.BytesSent[t] + st.PacketsSent[t]*protocol.ExtHeaderLen
		c.BytesIn[t] = st.BytesReceived[t] + st.PacketsReceived[t]*protocol.ExtHeaderLen
	}
	c.Retransmissions, c.Unreachable = st.Retransmissions, p.extEvents[extended.Unreachable]
	c.QueuedSends, c.InFlight, c.InFlightPackets = st.Queued, st.Begun, st.InFlight
	c.RoundTrip = st.RoundTrip
	p.conn.EachSend(func(s extended.SendState) bool { // the first is the oldest
		w := sendWait(s)
		c.OldestSend = OldestWait{Waits: true, For: w.For, Elapsed: e.at - w.Since}
		return false
	})
	if st.Awaited == 0 {
		return // there may be many that no receive has matched
	}
	for in := range p.ins.all {
		if in.req == nil {
			continue
		}
		if elapsed := e.at - in.phases.Start; !c.OldestRecv.Waits || elapsed > c.OldestRecv.Elapsed {
			c.OldestRecv = OldestWait{Waits: true, For: protocol.Data, Elapsed: elapsed}
		}
	}
}

// sentData counts a DATA message of a handshake.
func (p *peer) sentData(bytes int) {
	p.sent(protocol.Data, protocol.HeaderLen+bytes)
	if p.tr.Reliable() {
		p.dataOut++
		p.dataBytes += uint64(protocol.HeaderLen + bytes)
		return
	}
	shape, words := &p.cfg.Handshake.Shape, wordsOf(int64(bytes))
	p.dataOut += uint64(shape.Datagrams(words))
	p.dataBytes += uint64(protocol.HeaderLen + shape.PayloadBytes(words))
}

// countGiveUp counts a message of a handshake that has ended with err because the
// peer did not answer.
func (p *peer) countGiveUp(err error) {
	if errors.Is(err, handshake.ErrTimeout) || errors.Is(err, handshake.ErrPartial) {
		p.giveUps++
	}
}
