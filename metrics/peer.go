package metrics

import (
	"strings"

	"github.com/zrlmpi/zrlmpid/metrics/phases"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Values of the label "direction" of messages and packets.
const (
	directionSend    = "send"
	directionReceive = "receive"
	directionIn      = "in"
	directionOut     = "out"
)

// labelHeldBack is the value of the label waits_for if a message is queued behind other messages.
const labelHeldBack = "held_back"

// packetTypes contains the value of the label for each type of packet.
var packetTypes = func() (names [state.NumTypes]string) {
	names[0] = labelHeldBack
	for t := 1; t < state.NumTypes; t++ {
		names[t] = strings.ToLower(protocol.Type(t).String())
	}
	return names
}()

// collectPeer adds the series of one peer, or the series shared by all other peers.
func (l *rankSample) collectPeer(p *peerSample) {
	counters := &p.counters
	for ph, h := range p.times {
		if h != nil {
			name := phases.PhaseNames[ph]
			l.histogram(peerPhaseSeconds, nativeHistogram(h), l.rank, p.label, name.Direction, name.Phase)
		}
	}
	l.counter(messages, counters.Sent, l.rank, p.label, directionSend)
	l.counter(messages, counters.Received, l.rank, p.label, directionReceive)
	l.counter(messageBytes, counters.SentBytes, l.rank, p.label, directionSend)
	l.counter(messageBytes, counters.ReceivedBytes, l.rank, p.label, directionReceive)
	l.counter(messageFailures, counters.Failed, l.rank, p.label)
	l.counter(retransmissions, counters.Retransmissions, l.rank, p.label)
	l.counter(unreachable, counters.Unreachable, l.rank, p.label)
	for t := range state.NumTypes {
		name := packetTypes[t]
		if n := counters.PacketsIn[t]; n > 0 {
			l.counter(packets, n, l.rank, p.label, directionIn, name)
			l.counter(packetBytes, counters.BytesIn[t], l.rank, p.label, directionIn, name)
		}
		if n := counters.PacketsOut[t]; n > 0 {
			l.counter(packets, n, l.rank, p.label, directionOut, name)
			l.counter(packetBytes, counters.BytesOut[t], l.rank, p.label, directionOut, name)
		}
	}
	for reason, n := range counters.Drops {
		if n > 0 {
			l.counter(drops, n, l.rank, p.label, state.DropReason(reason).String())
		}
	}
	for event, n := range counters.Events {
		if n > 0 {
			l.counter(events, n, l.rank, p.label, state.Event(event).String())
		}
	}
	up := 1.0
	if counters.Silent {
		up = 0
	}
	l.gauge(peerUp, up, l.rank, p.label)
	l.gauge(queuedSends, float64(counters.QueuedSends), l.rank, p.label)
	l.gauge(inFlightMessages, float64(counters.InFlight), l.rank, p.label)
	if counters.Extended {
		l.gauge(inFlightPackets, float64(counters.InFlightPackets), l.rank, p.label)
	}
	if counters.RoundTrip > 0 {
		l.gauge(roundTrip, counters.RoundTrip.Seconds(), l.rank, p.label)
	}
	l.collectWait(counters.OldestSend, p.label, directionSend)
	l.collectWait(counters.OldestRecv, p.label, directionReceive)
}

// collectWait adds a wait, unless it is the receive in which a kernel waits for work.
func (l *rankSample) collectWait(w state.OldestWait, peer, direction string) {
	if !w.Waits || l.state.Kernel != "" && direction == directionReceive && w.Awaited == protocol.SendRequest {
		return
	}
	l.gauge(oldestWait, w.Elapsed.Seconds(), l.rank, peer, direction, packetTypes[w.Awaited])
}

// mergeCounters adds the counters of one peer to the counters shared by all other peers.
func mergeCounters(to, counters *state.PeerCounters) {
	to.Extended = to.Extended || counters.Extended
	to.Silent = to.Silent || counters.Silent
	to.MessageCounts.Add(&counters.MessageCounts)
	to.SentBytes += counters.SentBytes
	to.ReceivedBytes += counters.ReceivedBytes
	to.Unreachable += counters.Unreachable
	addCounts(to.PacketsOut[:], counters.PacketsOut[:])
	addCounts(to.PacketsIn[:], counters.PacketsIn[:])
	addCounts(to.BytesOut[:], counters.BytesOut[:])
	addCounts(to.BytesIn[:], counters.BytesIn[:])
	to.Drops.Add(&counters.Drops)
	to.Events.Add(&counters.Events)
	to.QueuedSends += counters.QueuedSends
	to.InFlight += counters.InFlight
	to.InFlightPackets += counters.InFlightPackets
	to.OldestSend = olderWait(to.OldestSend, counters.OldestSend)
	to.OldestRecv = olderWait(to.OldestRecv, counters.OldestRecv)
}

func addCounts(to, of []uint64) {
	for i, n := range of {
		to[i] += n
	}
}

func olderWait(a, b state.OldestWait) state.OldestWait {
	if !a.Waits || b.Waits && b.Elapsed > a.Elapsed {
		return b
	}
	return a
}
