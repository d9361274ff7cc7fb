package diagnosis

import (
	"slices"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// AnyRank is the peer of a receive that accepts messages from any source.
const AnyRank = -1

// edge is a wait of one rank for another rank, or for any rank. It is an edge of the graph of all waits.
type edge struct {
	from, to int
	isSend   bool
	seconds  float64
	// state is the state of the message's handshake. missing is the packet that would end this state, or 0 if the
	// message is held back.
	state   handshake.State
	missing protocol.Type
	// wait is the operation that waits. If the wait is known only from a packet that the waiting rank has sent, wait is
	// nil, and deferred is the call instead.
	wait     *state.Wait
	deferred *state.Deferred
	// call is the collective call that the message belongs to, or nil for other messages.
	call *collective.Snapshot
	// peer is what the rank from has reported about the rank to. It is nil if to is AnyRank, or if from has not
	// answered.
	peer *state.Peer
	// isIdle is set if the wait is harmless because a stand-in's kernel is merely waiting for work.
	isIdle bool
	// pairFinding is a finding that explains the wait by the states of its two ranks, if there is one.
	pairFinding *Finding
}

// isOldEnough reports whether the wait has lasted long enough to be considered.
func (v *view) isOldEnough(e *edge) bool { return e.seconds >= v.minAge }

// addEdges adds to the graph the waits of a rank that has answered.
func (v *view) addEdges(rank *rankState) {
	standin := rank.Role == state.RoleStandin
	from := len(v.edges)
	if w := rank.Engine.AnySource; w != nil {
		v.addWait(rank, &edge{from: rank.Rank, to: AnyRank, wait: w, isIdle: standin})
	}
	for i := range rank.Engine.Peers {
		p := &rank.Engine.Peers[i]
		if rank.peers[p.Rank] != p { // not a rank of the cluster: the status comes from another process
			continue
		}
		if w := p.Sending; w != nil && !w.Cancelled {
			v.addWait(rank, &edge{from: rank.Rank, to: p.Rank, isSend: true, wait: w, peer: p})
		}
		if w := p.Receiving; w != nil {
			v.addWait(rank, &edge{from: rank.Rank, to: p.Rank, wait: w, peer: p,
				isIdle: standin && w.State == handshake.WaitRequest && w.Deferred == ""})
		}
		if v.ranks[p.Rank] != nil {
			continue // it reports its own waits
		}
		if d := p.Deferred; d != nil {
			v.edges = append(v.edges,
				&edge{from: p.Rank, to: rank.Rank, isSend: true, seconds: d.Seconds, state: handshake.WaitClear,
					missing: protocol.ClearToSend, deferred: d})
		}
		if d := p.UnansweredClear; d != nil {
			v.edges = append(v.edges, &edge{from: p.Rank, to: rank.Rank, seconds: d.Seconds, state: handshake.WaitData,
				missing: protocol.Data, deferred: d})
		}
	}
	for i := range rank.Engine.Calls {
		v.addCall(rank, &rank.Engine.Calls[i], v.edges[from:])
	}
	if own := v.edges[from:]; slices.ContainsFunc(own, func(e *edge) bool { return e.wait != nil && e.wait.Awaited }) {
		// A posted operation does not count as a wait until its program awaits it.
		own = slices.DeleteFunc(own, func(e *edge) bool { return e.wait != nil && e.call == nil && !e.wait.Awaited })
		v.edges = v.edges[:from+len(own)]
	}
}

// addWait completes and adds an edge of a rank that has answered. A message of a collective call gets the age of the
// call, because earlier messages of the call may have waited for the same cause.
func (v *view) addWait(r *rankState, e *edge) {
	e.seconds, e.state, e.missing = e.wait.Seconds, e.wait.State, e.wait.WaitsFor
	of := &e.wait.Envelope
	for i := range r.Engine.Calls {
		c := &r.Engine.Calls[i]
		begun := c.Algorithm != ""
		if c.Comm == of.Comm && (of.Agreement && !begun || of.Collective == c.Collective && of.Number == c.Number) {
			e.call = c
			e.seconds = max(e.seconds, c.Seconds)
			break
		}
	}
	v.edges = append(v.edges, e)
}

// addCall adds the waits of a collective call that are not waits for messages: waits for shared buffers, and waits for
// messages queued behind other messages of the same pair.
func (v *view) addCall(rank *rankState, snapshot *collective.Snapshot, known []*edge) {
	for _, peer := range snapshot.WaitsFor {
		if rank.peers[peer] == nil {
			continue
		}
		i := slices.IndexFunc(known, func(e *edge) bool { return e.from == rank.Rank && e.to == peer })
		if i < 0 {
			v.edges = append(v.edges, &edge{from: rank.Rank, to: peer, seconds: snapshot.Seconds, call: snapshot,
				peer: rank.peers[peer]})
			continue
		}
		if e := known[i]; e.call == nil && e.wait.Envelope.Bytes == mpe.UnknownLength { // waits for shared buffers
			e.call, e.missing, e.seconds = snapshot, 0, max(e.seconds, snapshot.Seconds)
		}
	}
}
