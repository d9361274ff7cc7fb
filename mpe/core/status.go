package core

import "github.com/zrlmpi/zrlmpid/mpe/state"

// Snapshot implements Engine.Snapshot, without the descriptions of state.Engine.Describe.
func (e *Core) Snapshot() state.Engine {
	s := state.Engine{
		Rank: e.rank, Size: len(e.peers), Dropped: e.drops, LastDrop: e.lastDrop.snapshot(e.now),
		SinceLastEnd: age(e.now, e.lastEndAt), LastFailed: e.lastFailed, Uptime: e.now.Seconds(),
	}
	s.Calls, s.Collectives, s.Disagreements = e.calls.Calls(), e.calls.Counts(), e.calls.Disagreements()
	s.EndedCalls = e.calls.EndedCalls()
	var counts state.PeerCounters
	of := make([]*state.Peer, len(e.peers)) // by rank
	s.Peers = make([]state.Peer, 0, len(e.peers))
	for rank, p := range e.peers {
		if p != nil {
			s.Peers = append(s.Peers, p.baseSnapshot(&counts))
			of[rank] = &s.Peers[len(s.Peers)-1]
			p.snapshot(of[rank], e.now)
		}
	}
	eachWait(e, func(w *Waiting) {
		switch {
		case w.AnySource && w.Posted:
			keepFirst(e, &s.AnySource, w, nil)
		case w.peer == nil || w.req == nil && !w.Send && w.Call == nil: // of this rank, or detached
		case w.Send:
			p := of[w.Remote]
			keepFirst(e, &p.Sending, w, &p.QueuedSends)
		default:
			p := of[w.Remote]
			keepFirst(e, &p.Receiving, w, &p.QueuedReceives)
		}
	})
	for comm, m := range e.matching.matchers {
		s.Posted += m.Posted()
		s.Unexpected += m.Unexpected()
		m.EachUnexpected(func(source, _ int32, u unexpected) bool {
			if int(source) != e.rank {
				addUnexpected(of[source], &u, comm, e.peers[source])
			}
			return true
		})
	}
	return s
}

// keepFirst sets *first to the first wait, and counts further ones in *more. A wait of a detached send gives way to
// one whose caller still waits.
func keepFirst(e *Core, first **state.Wait, w *Waiting, more *int) {
	awaited := w.req != nil && w.req.Awaited
	if *first != nil {
		(*first).Awaited = (*first).Awaited || awaited
		if more != nil {
			*more++
		}
		if !(*first).Cancelled || w.detached() {
			return
		}
	}
	facts := new(state.WaitFacts)
	w.fillFacts(e, facts)
	s := &state.Wait{
		State: w.State, WaitsFor: w.For, Seconds: w.Elapsed.Seconds(), Words: w.Words,
		Retransmissions: w.Retransmissions, BytesDone: w.Got,
		Facts: facts, Cancelled: facts.Detached, Awaited: awaited, Envelope: envelope(w),
	}
	if w.HasDeferred {
		s.Deferred = state.CallOf(w.Deferred)
	}
	*first = s
}

// baseSnapshot returns the part of the snapshot that all profiles share. It also fills in the counters.
func (p *peer) baseSnapshot(c *state.PeerCounters) state.Peer {
	p.fillCounters(c)
	s := state.Peer{
		Rank: p.rank, Kind: p.cfg.Kind, Address: p.cfg.Address, Profile: state.ProfileOf(p.profile),
		MessageCounts: c.MessageCounts,
		PacketsIn:     p.packetsIn, BytesIn: p.bytesIn, BytesOut: p.bytesOut,
		TakenOver: p.takenOver, TakenOverBytes: p.takenOverRemaining,
		PacketsOut: p.packetsOut, Dropped: p.drops, Events: p.events,
		SinceLastPacket: age(p.e.now, p.lastPacketAt), Unreachable: age(p.e.now, p.unreachableAt), LastDrop: p.lastDrop.snapshot(p.e.now),
	}
	if p.sendErr != nil {
		s.NetworkError = p.sendErr.Error()
	}
	return s
}
