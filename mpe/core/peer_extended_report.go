package core

import (
	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

func (l *extendedLink) pendingLoad() (sends int, moving bool) {
	return l.conn.PendingSends(), l.conn.Busy()
}

func (l *extendedLink) sendWaits(yield func(*Waiting) bool) {
	waiting, more := Waiting{IsTransferring: true, peer: l.p}, true
	waiting.Send = true
	l.conn.EachSend(func(st extended.SendState) bool {
		// A send that was posted just now has no time yet: its time appears to be in the future.
		st.Since = min(st.Since, l.p.e.now)
		waiting.Wait, waiting.send = sendWait(&st), st
		waiting.NotBegun = st.State == extended.Queued
		waiting.req = l.outbox.find(st.ID).request
		more = yield(&waiting)
		return more
	})
	if !more {
		return
	}
	if w, ok := l.restWait(); ok { // the oldest represents all resting sends
		yield(&w)
	}
}

// sendWait expresses the wait of a send in the extended profile as the corresponding wait of a handshake.
func sendWait(st *extended.SendState) handshake.Wait {
	wait := handshake.Wait{
		Local: st.Local, Remote: st.Remote, Since: st.Since, Retransmissions: st.Retransmissions,
		Words: wordsOf(st.Length), Got: st.BytesDone,
	}
	switch st.State {
	case extended.WaitClear, extended.Canceling:
		wait.State, wait.For = handshake.WaitClear, protocol.ClearToSend
	case extended.Eager, extended.Sending:
		wait.State, wait.For = handshake.WaitAck, protocol.Ack
	default:
		wait.State = handshake.Held
	}
	return wait
}

// recvWaits yields the incoming messages that receives have matched, in any order.
func (l *extendedLink) recvWaits(yield func(*Waiting) bool) {
	waiting := Waiting{peer: l.p}
	for in := range l.inbox.each {
		if in.recv == nil && !in.accepted {
			continue
		}
		waiting.Wait = handshake.Wait{
			State: handshake.Receiving, For: protocol.Data, Local: uint32(l.p.e.rank), Remote: uint32(in.source),
			Since: in.phases.Start, Words: wordsOf(in.bytes), Got: in.storedBytes,
		}
		waiting.IsTransferring, waiting.req = !in.isComplete, in.recv
		if !yield(&waiting) {
			return
		}
	}
}

// addCounters implements link. The state machine counts payload only, so it adds the headers. Packets with short
// headers count as if their headers were long.
func (l *extendedLink) addCounters(counters *state.PeerCounters) {
	st := l.conn.Stats()
	counters.Extended = true
	counters.PacketsOut, counters.PacketsIn = st.PacketsSent, st.PacketsReceived
	for t := range state.NumTypes {
		counters.BytesOut[t] = st.BytesSent[t] + st.PacketsSent[t]*protocol.ExtHeaderLen
		counters.BytesIn[t] = st.BytesReceived[t] + st.PacketsReceived[t]*protocol.ExtHeaderLen
	}
	counters.Retransmissions, counters.Unreachable = st.Retransmissions, l.p.events[state.EventUnreachable]
	counters.QueuedSends, counters.InFlight, counters.InFlightPackets = st.QueuedSends, st.Begun, st.InFlight
	counters.RoundTrip = st.RoundTrip
	if w, ok := l.restWait(); ok {
		keepOldest(l.p.e, &counters.OldestSend, w.For, w.Since)
	}
	l.conn.EachSend(func(st extended.SendState) bool { // the first is the oldest send that is not resting
		keepOldest(l.p.e, &counters.OldestSend, sendWait(&st).For, min(st.Since, l.p.e.now))
		return false
	})
	for in := range l.inbox.each {
		if in.recv != nil {
			counters.Receiving++
			keepOldest(l.p.e, &counters.OldestRecv, protocol.Data, in.phases.Start)
		}
	}
}

func (l *extendedLink) snapshot(s *state.Peer, now handshake.Instant) {
	st := l.conn.Stats()
	local, remote := l.conn.Sessions()
	s.Extended = &state.Extended{
		Session: local, PeerSession: remote, RoundTrip: st.RoundTrip.Seconds(), Timeout: st.Timeout.Seconds(),
		Payload: st.Payload, Probes: st.Probes, Window: st.Window, InFlight: st.InFlight, Queued: st.QueuedSends,
		Begun:         st.Begun,
		MessageCredit: st.MessageCredit, EagerCredit: st.EagerCredit, CreditScarce: l.isCreditScarce(),
		Retransmissions: st.Retransmissions, Timeouts: st.Timeouts, Losses: st.Losses, OutOfOrder: st.OutOfOrder,
		Hellos: st.Hellos,
	}
	if st.StalledSince != 0 {
		s.Extended.Stalled = (now - st.StalledSince).Seconds()
	}
}

// isCreditScarce reports whether the credit is low, or was low when the oldest send began: that send was announced, and
// waits for a receive even if the peer has granted more credit since.
func (l *extendedLink) isCreditScarce() bool {
	scarce := l.conn.IsCreditScarce()
	l.conn.EachSend(func(st extended.SendState) bool {
		scarce = scarce || st.Announced
		return false
	})
	return scarce
}

// fillFacts copies those facts about the link that explain why an operation waits for the peer.
func (l *extendedLink) fillFacts(w *Waiting, f *state.ExtendedFacts) {
	_, remote := l.conn.Sessions()
	f.Send, f.Connected, f.Version = w.send, remote != 0, l.conn.ForeignVersion()
	f.NoCredit = l.conn.Stats().MessageCredit == 0
}
