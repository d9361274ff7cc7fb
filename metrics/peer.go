package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/zrlmpi/zrlmpid/metrics/phases"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Values of the label direction for messages and packets.
const (
	directionSend    = "send"
	directionReceive = "receive"
	directionIn      = "in"
	directionOut     = "out"
)

// labelHeldBack is the value of the label waits_for for a message that is queued behind others.
const labelHeldBack = "held_back"

// packetTypes contains the label value for each packet type.
var packetTypes = func() (names [state.NumTypes]string) {
	names[0] = labelHeldBack
	for t := 1; t < state.NumTypes; t++ {
		names[t] = strings.ToLower(protocol.Type(t).String())
	}
	return names
}()

// collectPeer exposes the series of one peer, or of all other peers together.
func (l *rankSample) collectPeer(out chan<- prometheus.Metric, p *peerSample) {
	c := &p.counters
	count := func(f *family, n uint64, labels ...string) {
		out <- f.counterAt(l.createdAt, n, append([]string{l.rank, p.label}, labels...)...)
	}
	for ph, h := range p.times {
		if h != nil {
			out <- peerPhaseSeconds.nativeHistogram(h, l.createdAt, l.rank, p.label, phases.PhaseNames[ph].Direction,
				phases.PhaseNames[ph].Phase)
		}
	}
	count(messages, c.Sent, directionSend)
	count(messages, c.Received, directionReceive)
	count(messageBytes, c.SentBytes, directionSend)
	count(messageBytes, c.ReceivedBytes, directionReceive)
	count(messageFailures, c.Failed)
	count(retransmissions, c.Retransmissions)
	count(unreachable, c.Unreachable)
	for t := range state.NumTypes {
		name := packetTypes[t]
		if n := c.PacketsIn[t]; n > 0 {
			count(packets, n, directionIn, name)
			count(packetBytes, c.BytesIn[t], directionIn, name)
		}
		if n := c.PacketsOut[t]; n > 0 {
			count(packets, n, directionOut, name)
			count(packetBytes, c.BytesOut[t], directionOut, name)
		}
	}
	for reason, n := range c.Drops {
		if n > 0 {
			count(drops, n, state.DropReason(reason).String())
		}
	}
	for event, n := range c.Events {
		if n > 0 {
			count(events, n, state.Event(event).String())
		}
	}
	up := 1.0
	if c.Silent {
		up = 0
	}
	out <- peerUp.gauge(up, l.rank, p.label)
	out <- queuedSends.gauge(float64(c.QueuedSends), l.rank, p.label)
	out <- inFlightMessages.gauge(float64(c.InFlight), l.rank, p.label)
	if c.Extended {
		out <- inFlightPackets.gauge(float64(c.InFlightPackets), l.rank, p.label)
	}
	if c.RoundTrip > 0 {
		out <- roundTrip.gauge(c.RoundTrip.Seconds(), l.rank, p.label)
	}
	l.collectWait(out, c.OldestSend, p.label, directionSend)
	l.collectWait(out, c.OldestRecv, p.label, directionReceive)
}

// collectWait exposes a wait, unless it is the receive in which a kernel waits for work.
func (l *rankSample) collectWait(out chan<- prometheus.Metric, w state.OldestWait, peer, direction string) {
	if !w.Waits || l.state.Kernel != "" && direction == directionReceive && w.Awaited == protocol.SendRequest {
		return
	}
	out <- oldestWait.gauge(w.Elapsed.Seconds(), l.rank, peer, direction, packetTypes[w.Awaited])
}

// mergeCounters adds the counters of one peer to the counters that all other peers share.
func mergeCounters(to, c *state.PeerCounters) {
	to.Extended = to.Extended || c.Extended
	to.Silent = to.Silent || c.Silent
	to.MessageCounts.Add(&c.MessageCounts)
	to.SentBytes += c.SentBytes
	to.ReceivedBytes += c.ReceivedBytes
	to.Unreachable += c.Unreachable
	addCounts(to.PacketsOut[:], c.PacketsOut[:])
	addCounts(to.PacketsIn[:], c.PacketsIn[:])
	addCounts(to.BytesOut[:], c.BytesOut[:])
	addCounts(to.BytesIn[:], c.BytesIn[:])
	to.Drops.Add(&c.Drops)
	to.Events.Add(&c.Events)
	to.QueuedSends += c.QueuedSends
	to.InFlight += c.InFlight
	to.InFlightPackets += c.InFlightPackets
	to.OldestSend = olderWait(to.OldestSend, c.OldestSend)
	to.OldestRecv = olderWait(to.OldestRecv, c.OldestRecv)
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
