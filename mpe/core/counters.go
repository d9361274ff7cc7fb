package core

import (
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// oldestPosted limits the number of posted receives, oldest first, that RankCounters examines in each communicator to
// find the oldest receive from each source: a communicator may contain a million receives.
const oldestPosted = 1024

// RankCounters fills in the counters of the rank. For each source with a pending receive, it sets posted[source] to the
// time at which the oldest such receive was posted.
func (e *Core) RankCounters(counters *state.RankCounters, posted []handshake.Instant) {
	*counters = state.RankCounters{Rank: e.rank, Drops: e.drops, Collectives: e.calls.Counts(),
		Disagreements: e.calls.Disagreements(), Probes: len(e.Probes.list)}
	e.calls.EachAwait(func(int, handshake.Instant, collective.Origin) { counters.SharedWaits++ })
	anySource := handshake.Instant(0)
	for _, m := range e.matching.matchers {
		counters.Posted += m.Posted()
		counters.Unexpected += m.Unexpected()
		n := 0
		for waiting := range postedWaits(e, m) {
			oldest := &anySource
			if !waiting.AnySource {
				oldest = &posted[waiting.Remote]
			}
			if *oldest == 0 || waiting.Since < *oldest {
				*oldest = max(waiting.Since, 1)
			}
			if n++; n == oldestPosted {
				break
			}
		}
	}
	if anySource != 0 {
		counters.AnySource = state.OldestWait{Waits: true, Awaited: protocol.SendRequest, Elapsed: e.now - anySource}
	}
}

// Depths implements Engine.Depths.
func (e *Core) Depths() (depths state.Depths) {
	for _, m := range e.matching.matchers {
		depths.Posted += m.Posted()
		depths.Unexpected += m.Unexpected()
	}
	for p := range e.peers.created {
		sends, _ := p.pendingLoad()
		depths.Sends += sends
	}
	return depths
}

// PeerCounters fills in the counters of a peer, and reports whether rank is a peer that has been in use.
func (e *Core) PeerCounters(c *state.PeerCounters, rank int) bool {
	p := e.peers.list[rank]
	if p == nil {
		return false
	}
	p.fillCounters(c)
	return true
}

func (p *peer) fillCounters(c *state.PeerCounters) {
	*c = state.PeerCounters{
		Rank: p.rank, MessageCounts: state.MessageCounts{Sent: p.sendsDone, Received: p.recvsDone, Failed: p.failed},
		SentBytes: p.sentBytes, ReceivedBytes: p.recvBytes, Drops: p.drops, Events: p.events, Silent: p.isSilent(),
	}
	p.addCounters(c)
}

// keepOldest sets *oldest to a wait for the packet waitsFor since the given time, unless *oldest already holds a wait
// that began earlier.
func keepOldest(e *Core, oldest *state.OldestWait, waitsFor protocol.Type, since handshake.Instant) {
	if elapsed := e.now - since; !oldest.Waits || elapsed > oldest.Elapsed {
		*oldest = state.OldestWait{Waits: true, Awaited: waitsFor, Elapsed: elapsed}
	}
}
