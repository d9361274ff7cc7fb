package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

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

// collectPeer exposes the series of one peer, or the series shared by all other peers.
func (l *rankSample) collectPeer(out chan<- prometheus.Metric, p *peerSample) {
	counters := &p.counters
	count := func(f *family, n uint64, labels ...string) {
		out <- f.counterAt(l.createdAt, n, append([]string{l.rank, p.label}, labels...)...)
	}
	for ph, h := range p.times {
		if h != nil {
			out <- peerPhaseSeconds.nativeHistogram(h, l.createdAt, l.rank, p.label, phases.PhaseNames[ph].Direction,
				phases.PhaseNames[ph].Phase)
		}
	}
	count(messages, counters.Sent, directionSend)
	count(messages, counters.Received, directionReceive)
	count(messageBytes, counters.SentBytes, directionSend)
	count(messageBytes, counters.ReceivedBytes, directionReceive)
	count(messageFailures, counters.Failed)
	count(retransmissions, counters.Retransmissions)
	count(unreachable, counters.Unreachable)
	for t := range state.NumTypes {
		name := packetTypes[t]
		if n := counters.PacketsIn[t]; n > 0 {
			count(packets, n, directionIn, name)
			count(packetBytes, counters.BytesIn[t], directionIn, name)
		}
		if n := counters.PacketsOut[t]; n > 0 {
			count(packets, n, directionOut, name)
			count(packetBytes, counters.BytesOut[t], directionOut, name)
		}
	}
	for reason, n := range counters.Drops {
		if n > 0 {
			count(drops, n, state.DropReason(reason).String())
		}
	}
	for event, n := range counters.Events {
		if n > 0 {
			count(events, n, state.Event(event).String())
		}
	}
	up := 1.0
	if counters.Silent {
		up = 0
	}
	out <- peerUp.gauge(up, l.rank, p.label)
	out <- queuedSends.gauge(float64(counters.QueuedSends), l.rank, p.label)
	out <- inFlightMessages.gauge(float64(counters.InFlight), l.rank, p.label)
	if counters.Extended {
		out <- inFlightPackets.gauge(float64(counters.InFlightPackets), l.rank, p.label)
	}
	if counters.RoundTrip > 0 {
		out <- roundTrip.gauge(counters.RoundTrip.Seconds(), l.rank, p.label)
	}
	l.collectWait(out, counters.OldestSend, p.label, directionSend)
	l.collectWait(out, counters.OldestRecv, p.label, directionReceive)
}

// collectWait exposes a wait, unless it is the receive in which a kernel waits for work.
func (l *rankSample) collectWait(out chan<- prometheus.Metric, w state.OldestWait, peer, direction string) {
	if !w.Waits || l.state.Kernel != "" && direction == directionReceive && w.Awaited == protocol.SendRequest {
		return
	}
	out <- oldestWait.gauge(w.Elapsed.Seconds(), l.rank, peer, direction, packetTypes[w.Awaited])
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
