package core

import "github.com/zrlmpi/zrlmpid/mpe/state"

// Snapshot implements Engine.Snapshot, without the descriptions of state.Engine.Describe.
func (e *Core) Snapshot() state.Engine {
	engine := state.Engine{
		Rank: e.rank, Size: len(e.peers.list), Dropped: e.drops, LastDrop: e.lastDrop.snapshot(e.now),
		SinceLastEnd: age(e.now, e.lastEndAt), LastFailed: e.lastFailed, Uptime: e.now.Seconds(),
	}
	engine.Calls, engine.Collectives, engine.Disagreements = e.calls.Calls(), e.calls.Counts(), e.calls.Disagreements()
	engine.EndedCalls = e.calls.EndedCalls()
	var counts state.PeerCounters
	of := make([]*state.Peer, len(e.peers.list)) // by rank
	engine.Peers = make([]state.Peer, 0, e.peers.numListed())
	for rank := range e.peers.list {
		if p := e.peers.listed(rank); p != nil {
			engine.Peers = append(engine.Peers, p.baseSnapshot(&counts))
			of[rank] = &engine.Peers[len(engine.Peers)-1]
			p.snapshot(of[rank], e.now)
		}
	}
	eachWait(e, func(waiting *Waiting) {
		switch {
		case waiting.AnySource && waiting.Posted:
			keepFirst(e, &engine.AnySource, waiting, nil)
		case waiting.peer == nil || waiting.req == nil && !waiting.Send && waiting.Call == nil: // of this rank, or detached
		case waiting.Send:
			p := of[waiting.Remote]
			keepFirst(e, &p.Sending, waiting, &p.QueuedSends)
		default:
			p := of[waiting.Remote]
			keepFirst(e, &p.Receiving, waiting, &p.QueuedReceives)
		}
	})
	for comm, m := range e.matching.matchers {
		engine.Posted += m.Posted()
		engine.Unexpected += m.Unexpected()
		m.EachUnexpected(func(source, _ int32, u unexpected) bool {
			if int(source) != e.rank {
				addUnexpected(of[source], &u, comm, e.peers.at(int(source)))
			}
			return true
		})
	}
	return engine
}

// keepFirst sets *first to the first wait, and counts further waits in *more. The wait of a detached send is replaced
// by the next wait whose caller still exists.
func keepFirst(core *Core, first **state.Wait, waiting *Waiting, more *int) {
	r := waiting.req
	awaited := r != nil && (r.Awaited || r.AwaitedElsewhere != nil && r.AwaitedElsewhere())
	if *first != nil {
		(*first).Awaited = (*first).Awaited || awaited
		if more != nil {
			*more++
		}
		if !(*first).Cancelled || waiting.detached() {
			return
		}
	}
	facts := new(state.WaitFacts)
	waiting.fillFacts(core, facts)
	wait := &state.Wait{
		State: waiting.State, WaitsFor: waiting.For, Seconds: waiting.Elapsed.Seconds(), Words: waiting.Words,
		Retransmissions: waiting.Retransmissions, BytesDone: waiting.Got,
		Facts: facts, Cancelled: facts.Detached, Awaited: awaited, Envelope: envelope(waiting),
	}
	if waiting.HasDeferred {
		wait.Deferred = state.CallOf(waiting.Deferred)
	}
	*first = wait
}

// baseSnapshot returns those parts of a peer's snapshot that all profiles share, and fills in the counters c.
func (p *peer) baseSnapshot(c *state.PeerCounters) state.Peer {
	p.fillCounters(c)
	s := state.Peer{
		Rank: p.rank, Kind: p.cfg.Kind, Address: p.cfg.Address, Profile: state.ProfileOf(p.profile),
		MessageCounts: c.MessageCounts,
		PacketsIn:     p.packetsIn, BytesIn: p.bytesIn, BytesOut: p.bytesOut,
		TakenOver: p.takenOver, TakenOverBytes: p.takenOverRemaining,
		PacketsOut: p.packetsOut, Dropped: p.drops, Events: p.events,
		SinceLastPacket: age(p.e.now, p.lastPacketAt), Unreachable: age(p.e.now,
			p.unreachableAt), LastDrop: p.lastDrop.snapshot(p.e.now),
	}
	if p.sendErr != nil {
		s.NetworkError = p.sendErr.Error()
	}
	return s
}
