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
	w, more := Waiting{IsTransferring: true, peer: l.p}, true
	w.Send = true
	l.conn.EachSend(func(st extended.SendState) bool {
		// A send whose time is not known yet was sent just now.
		st.Since = min(st.Since, l.p.e.now)
		w.Wait, w.send = sendWait(&st), st
		w.NotBegun = st.State == extended.Queued
		w.req = l.outbox.find(st.ID).request
		more = yield(&w)
		return more
	})
	if !more {
		return
	}
	if w, ok := l.restWait(); ok { // the oldest represents all
		yield(&w)
	}
}

// sendWait translates a wait of the extended profile into a wait of the handshake.
func sendWait(st *extended.SendState) handshake.Wait {
	w := handshake.Wait{
		Local: st.Local, Remote: st.Remote, Since: st.Since, Retransmissions: st.Retransmissions,
		Words: wordsOf(st.Length), Got: st.BytesDone,
	}
	switch st.State {
	case extended.WaitClear, extended.Canceling:
		w.State, w.For = handshake.WaitClear, protocol.ClearToSend
	case extended.Eager, extended.Sending:
		w.State, w.For = handshake.WaitAck, protocol.Ack
	default:
		w.State = handshake.Held
	}
	return w
}

// recvWaits yields the messages that receives have matched, in any order.
func (l *extendedLink) recvWaits(yield func(*Waiting) bool) {
	w := Waiting{peer: l.p}
	for in := range l.inbox.each {
		if in.recv == nil && !in.accepted {
			continue
		}
		w.Wait = handshake.Wait{
			State: handshake.Receiving, For: protocol.Data, Local: uint32(l.p.e.rank), Remote: uint32(in.source),
			Since: in.phases.Start, Words: wordsOf(in.bytes), Got: in.storedBytes,
		}
		w.IsTransferring, w.req = !in.isComplete, in.recv
		if !yield(&w) {
			return
		}
	}
}

func (l *extendedLink) addCounters(c *state.PeerCounters) {
	st := l.conn.Stats()
	c.Extended = true
	c.PacketsOut, c.PacketsIn = st.PacketsSent, st.PacketsReceived
	for t := range state.NumTypes {
		c.BytesOut[t] = st.BytesSent[t] + st.PacketsSent[t]*protocol.ExtHeaderLen
		c.BytesIn[t] = st.BytesReceived[t] + st.PacketsReceived[t]*protocol.ExtHeaderLen
	}
	c.Retransmissions, c.Unreachable = st.Retransmissions, l.p.events[state.EventUnreachable]
	c.QueuedSends, c.InFlight, c.InFlightPackets = st.QueuedSends, st.Begun, st.InFlight
	c.RoundTrip = st.RoundTrip
	if w, ok := l.restWait(); ok {
		keepOldest(l.p.e, &c.OldestSend, w.For, w.Since)
	}
	l.conn.EachSend(func(st extended.SendState) bool { // the first is the oldest that does not rest
		keepOldest(l.p.e, &c.OldestSend, sendWait(&st).For, min(st.Since, l.p.e.now))
		return false
	})
	for in := range l.inbox.each {
		if in.recv != nil {
			keepOldest(l.p.e, &c.OldestRecv, protocol.Data, in.phases.Start)
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

// isCreditScarce reports whether the credit is low, or was low when the oldest send began. That send waits for a
// receive even if the peer has granted more credit since.
func (l *extendedLink) isCreditScarce() bool {
	scarce := l.conn.IsCreditScarce()
	l.conn.EachSend(func(st extended.SendState) bool {
		scarce = scarce || st.Announced
		return false
	})
	return scarce
}

// fillFacts copies the facts that describe waits for the peer.
func (l *extendedLink) fillFacts(w *Waiting, f *state.ExtendedFacts) {
	_, remote := l.conn.Sessions()
	f.Send, f.Connected, f.Version = w.send, remote != 0, l.conn.ForeignVersion()
	f.NoCredit = l.conn.Stats().MessageCredit == 0
}
