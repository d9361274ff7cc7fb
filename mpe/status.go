package mpe

import (
	"fmt"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Snapshot is what a rank is doing at one moment, in the form that the control
// socket serves.
type Snapshot struct {
	Rank  int            `json:"rank"`
	Size  int            `json:"size"`
	Peers []PeerSnapshot `json:"peers"`
	// Posted and Unexpected are the depths of the matching queues, of all
	// communicators.
	Posted     int `json:"posted"`
	Unexpected int `json:"unexpected"`
	// AnySource is the oldest receive from any source that waits.
	AnySource *WaitSnapshot `json:"any_source,omitempty"`
	// Calls are the collective calls under way, and Collectives counts all that there
	// were.
	Calls       []CallSnapshot    `json:"calls,omitempty"`
	Collectives []CollectiveCount `json:"collectives,omitempty"`
	// Disagreements counts communicators whose members are configured differently
	// for collectives, so that they go by the default table.
	Disagreements uint64 `json:"disagreements,omitempty"`
	// Dropped counts what came from addresses that are no rank's, by reason.
	Dropped map[string]uint64 `json:"dropped,omitempty"`
}

// PeerSnapshot is what a rank is doing with one peer.
type PeerSnapshot struct {
	Rank    int    `json:"rank"`
	Kind    string `json:"kind"`
	Address string `json:"address"`
	Profile string `json:"profile"`
	// Transport is udp, tcp or shm. Whoever bound the engine's transports says it.
	Transport string `json:"transport,omitempty"`
	// Sending and Receiving are the messages in the pair's hands, or the
	// oldest ones of a peer of the extended profile. Receiving may be a
	// receive that no message has matched.
	Sending   *WaitSnapshot `json:"sending,omitempty"`
	Receiving *WaitSnapshot `json:"receiving,omitempty"`
	// QueuedSends and QueuedReceives wait besides.
	QueuedSends    int `json:"queued_sends"`
	QueuedReceives int `json:"queued_receives"`
	// Deferred is set while the peer's SEND_REQUEST waits for a receive of
	// ours: the peer is blocked in a send.
	Deferred *DeferredSnapshot `json:"deferred,omitempty"`
	// UnansweredClear is set while the peer's CLEAR_TO_SEND waits for DATA that no send
	// of this rank has: the peer is blocked in a receive.
	UnansweredClear *DeferredSnapshot `json:"unanswered_clear,omitempty"`
	// Sent, Received and Failed count messages.
	Sent     uint64 `json:"sent"`
	Received uint64 `json:"received"`
	Failed   uint64 `json:"failed"`
	// PacketsOut counts packets by type; a DATA message is one.
	PacketsOut map[string]uint64 `json:"packets_out,omitempty"`
	PacketsIn  uint64            `json:"packets_in"`
	BytesIn    uint64            `json:"bytes_in"`
	BytesOut   uint64            `json:"bytes_out"`
	// Dropped counts what arrived and was not used, by reason; Events what
	// else is worth knowing.
	Dropped map[string]uint64 `json:"dropped,omitempty"`
	Events  map[string]uint64 `json:"events,omitempty"`
	// Unexpected counts messages from the peer that no receive has matched.
	Unexpected int `json:"unexpected"`
	// TakenOver counts messages that a receive took over while they were
	// arriving, and TakenOverBytes what was spared a second copy.
	TakenOver      uint64 `json:"taken_over,omitempty"`
	TakenOverBytes uint64 `json:"taken_over_bytes,omitempty"`
	// Extended is set for a peer of the extended profile.
	Extended *ExtendedSnapshot `json:"extended,omitempty"`
	// Refuses says why sends to the peer are refused, if they are.
	Refuses string `json:"refuses,omitempty"`
	// NetworkError is the last error of the network towards the peer.
	NetworkError string `json:"network_error,omitempty"`
}

// ExtendedSnapshot is the state of a link of the extended profile. Times are in
// seconds.
type ExtendedSnapshot struct {
	// Session and PeerSession are the two sides' numbers; PeerSession is 0
	// until the peer has been heard of.
	Session     protocol.Session `json:"session"`
	PeerSession protocol.Session `json:"peer_session"`
	// RoundTrip is smoothed; TimeOut is after how long a packet is repeated.
	RoundTrip float64 `json:"round_trip_seconds"`
	TimeOut   float64 `json:"time_out_seconds"`
	// Window is how many packets may be in flight, InFlight how many are.
	Window   int `json:"window"`
	InFlight int `json:"in_flight"`
	// Queued are sends of which nothing was sent, Begun the others that have
	// not ended.
	Queued int `json:"queued"`
	Begun  int `json:"begun"`
	// MessageCredit and EagerCredit are what the peer has room for.
	MessageCredit uint32 `json:"message_credit"`
	EagerCredit   uint32 `json:"eager_credit"`
	// Repeats, TimeOuts and Losses count packets; Hellos those that look for
	// the peer.
	Retransmissions uint64 `json:"retransmissions"`
	TimeOuts        uint64 `json:"time_outs"`
	Losses          uint64 `json:"losses"`
	OutOfOrder      uint64 `json:"out_of_order"`
	Hellos          uint64 `json:"hellos"`
}

func extendedStats(c connState) *ExtendedSnapshot {
	st := c.Stats()
	local, remote := c.Session()
	return &ExtendedSnapshot{
		Session: local, PeerSession: remote, RoundTrip: st.RoundTrip.Seconds(), TimeOut: st.TimeOut.Seconds(),
		Window: st.Window, InFlight: st.InFlight, Queued: st.Queued, Begun: st.Begun,
		MessageCredit: st.MessageCredit, EagerCredit: st.EagerCredit,
		Retransmissions: st.Retransmissions, TimeOuts: st.TimeOuts, Losses: st.Losses, OutOfOrder: st.OutOfOrder, Hellos: st.Hellos,
	}
}

// WaitSnapshot says what a message waits for.
type WaitSnapshot struct {
	State string `json:"state"`
	// WaitsFor is a packet type, empty while the message is held back.
	WaitsFor        string  `json:"waits_for,omitempty"`
	Seconds         float64 `json:"seconds"`
	Words           uint32  `json:"words"`
	Retransmissions int     `json:"retransmissions"`
	Text            string  `json:"text"`
}

// DeferredSnapshot describes a SEND_REQUEST or CLEAR_TO_SEND that waits for the
// operation which it fits.
type DeferredSnapshot struct {
	Call    string  `json:"call"`
	Seconds float64 `json:"seconds"`
}

// Snapshot reports what the rank is doing.
func (e *Engine) Snapshot() Snapshot {
	e.lock()
	defer e.unlock()
	s := Snapshot{Rank: e.rank, Size: len(e.peers), Dropped: countReasons(&e.drops)}
	now := e.at
	s.Calls, s.Collectives, s.Disagreements = e.calls(now), e.collectiveCounts(), e.disagreements
	place := make([]int, len(e.peers)) // of a rank in s.Peers
	for rank, p := range e.peers {
		place[rank] = -1
		if p != nil {
			place[rank] = len(s.Peers)
			s.Peers = append(s.Peers, e.peerSnapshot(p, now))
		}
	}
	for _, m := range e.comms {
		s.Posted += m.Posted()
		s.Unexpected += m.Unexpected()
		m.EachPosted(func(_, _ int32, r *Request) bool {
			switch {
			case r.p == nil && s.AnySource == nil && r.peer == AnySource:
				s.AnySource = &WaitSnapshot{
					State: handshake.WaitRequest.String(), WaitsFor: protocol.SendRequest.String(),
					Seconds: (now - r.posted).Seconds(), Words: r.words(), Text: e.describeRecv(r, now) + r.ofCall(),
				}
			case r.p == nil:
			case s.Peers[place[r.peer]].Receiving == nil:
				s.Peers[place[r.peer]].Receiving = &WaitSnapshot{
					State: handshake.WaitRequest.String(), WaitsFor: protocol.SendRequest.String(),
					Seconds: (now - r.posted).Seconds(), Text: e.describeRecv(r, now) + r.ofCall(),
				}
			default:
				s.Peers[place[r.peer]].QueuedReceives++
			}
			return true
		})
		m.EachUnexpected(func(_, _ int32, in *inbound) bool {
			if in.source != e.rank {
				s.Peers[place[in.source]].Unexpected++
			}
			return true
		})
	}
	return s
}

func (e *Engine) peerSnapshot(p *peer, now handshake.Instant) PeerSnapshot {
	s := PeerSnapshot{
		Rank: p.rank, Kind: p.cfg.Kind, Address: p.cfg.Address, Profile: p.profile().String(),
		Sent: p.sendsDone, Received: p.recvsDone, Failed: p.failures,
		PacketsIn: p.packetsIn, BytesIn: p.bytesIn, BytesOut: p.bytesOut,
		TakenOver: p.takenOver, TakenOverBytes: p.takenOverBytes,
		PacketsOut: map[string]uint64{}, Dropped: countReasons(&p.drops), Events: map[string]uint64{},
	}
	for t, n := range p.packetsOut {
		if n > 0 {
			s.PacketsOut[protocol.Type(t).String()] = n
		}
	}
	if p.sendErr != nil {
		s.NetworkError = p.sendErr.Error()
	}
	if p.conn != nil {
		e.extendedSnapshot(&s, p, now)
		return s
	}
	s.QueuedSends = p.sendq.len()
	if w, ok := p.pair.SendWait(); ok {
		s.Sending = waitSnapshot(w, now)
	}
	if w, ok := p.pair.RecvWait(); ok {
		s.Receiving = waitSnapshot(w, now)
	}
	if h, since, ok := p.pair.Deferred(); ok {
		s.Deferred = &DeferredSnapshot{Call: h.Call.String(), Seconds: (now - since).Seconds()}
	}
	if h, since, ok := p.pair.UnansweredClear(); ok {
		s.UnansweredClear = &DeferredSnapshot{Call: h.Call.String(), Seconds: (now - since).Seconds()}
	}
	for ev, n := range p.events {
		if n > 0 {
			s.Events[handshake.Event(ev).String()] = n
		}
	}
	if err := p.pair.Refuses(); err != nil {
		s.Refuses = err.Error()
	}
	return s
}

func (e *Engine) extendedSnapshot(s *PeerSnapshot, p *peer, now handshake.Instant) {
	s.Extended = extendedStats(p.conn)
	for ev, n := range p.extEvents {
		if n > 0 {
			s.Events[extended.Event(ev).String()] = n
		}
	}
	for r, n := range p.extDrops {
		if n > 0 {
			s.Dropped[extended.Reason(r).String()] += n
		}
	}
	p.conn.EachSend(func(st extended.SendState) bool {
		if s.Sending == nil {
			s.Sending = waitSnapshot(sendWait(st), now)
			s.Sending.Text = p.describeSend(st, now) + p.outs.at(st.ID).req.ofCall()
		} else {
			s.QueuedSends++
		}
		return true
	})
	for in := range p.ins.all {
		if in.req == nil {
			continue
		}
		if s.Receiving == nil {
			s.Receiving = waitSnapshot(e.recvWait(in), now)
			s.Receiving.Text += in.req.ofCall()
		} else {
			s.QueuedReceives++
		}
	}
}

func waitSnapshot(w handshake.Wait, now handshake.Instant) *WaitSnapshot {
	s := &WaitSnapshot{
		State: w.State.String(), Seconds: (now - w.Since).Seconds(),
		Words: w.Words, Retransmissions: w.Retransmissions, Text: w.Describe(now),
	}
	if w.For != 0 {
		s.WaitsFor = w.For.String()
	}
	return s
}

func countReasons(counts *[handshake.NumReasons]uint64) map[string]uint64 {
	m := map[string]uint64{}
	for r, n := range counts {
		if n > 0 {
			m[handshake.Reason(r).String()] = n
		}
	}
	return m
}

// Waiting is one message that has been waiting for a packet.
type Waiting struct {
	handshake.Wait
	Elapsed time.Duration
	// AnySource: it is a receive from any source, and Remote means nothing.
	AnySource bool
	// Text is the wait in words.
	Text string
}

// Waits returns what has waited for at least the given time: messages that are
// on the move or announced, and the oldest posted receive of each source.
func (e *Engine) Waits(atLeast time.Duration) []Waiting {
	e.lock()
	defer e.unlock()
	now := e.at
	var ws []Waiting
	add := func(w handshake.Wait, text string) {
		if now-w.Since >= atLeast {
			ws = append(ws, Waiting{Wait: w, Elapsed: now - w.Since, Text: text})
		}
	}
	for _, p := range e.peers {
		switch {
		case p == nil:
		case p.conn != nil:
			p.conn.EachSend(func(st extended.SendState) bool {
				add(sendWait(st), p.describeSend(st, now)+p.outs.at(st.ID).req.ofCall())
				return st.State != extended.Queued // one that waits speaks for those behind it
			})
			for in := range p.ins.all {
				if in.req != nil {
					w := e.recvWait(in)
					add(w, w.Describe(now)+in.req.ofCall())
				}
			}
		default:
			if w, ok := p.pair.SendWait(); ok {
				add(w, w.Describe(now))
			}
			if w, ok := p.pair.RecvWait(); ok {
				add(w, w.Describe(now))
			}
		}
	}
	// Of the posted receives, the oldest from each source.
	told := make([]bool, len(e.peers)+1)
	for _, m := range e.comms {
		m.EachPosted(func(_, _ int32, r *Request) bool {
			if told[r.peer+1] {
				return true
			}
			told[r.peer+1] = true
			w := handshake.Wait{
				ID: r.id, State: handshake.WaitRequest, For: protocol.SendRequest, Local: uint32(e.rank), Since: r.posted,
			}
			if r.peer >= 0 {
				w.Remote = uint32(r.peer)
			}
			n := len(ws)
			add(w, e.describeRecv(r, now)+r.ofCall())
			if len(ws) > n {
				ws[n].AnySource = r.peer == AnySource
			}
			return true
		})
	}
	return ws
}

// Reset makes the engine forget what it knows of a peer that was restarted, so
// that sends to it are no longer refused. Messages under way are not touched.
func (e *Engine) Reset(rank int) error {
	if rank < 0 || rank >= len(e.peers) || rank == e.rank {
		return fmt.Errorf("rank %d: %w", rank, ErrRank)
	}
	e.lock()
	defer e.unlock()
	if p := e.peers[rank]; p.pair != nil {
		e.pair(p).Reset()
	}
	return nil
}
