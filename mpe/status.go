package mpe

import (
	"fmt"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Snapshot is what a rank is doing at one moment, in the form that the control
// socket serves.
type Snapshot struct {
	Rank  int            `json:"rank"`
	Size  int            `json:"size"`
	Peers []PeerSnapshot `json:"peers"`
	// Dropped counts what came from addresses that are no rank's, by reason.
	Dropped map[string]uint64 `json:"dropped,omitempty"`
}

// PeerSnapshot is what a rank is doing with one peer.
type PeerSnapshot struct {
	Rank    int    `json:"rank"`
	Kind    string `json:"kind"`
	Address string `json:"address"`
	Profile string `json:"profile"`
	// Sending and Receiving are the messages in the pair's hands.
	Sending   *WaitSnapshot `json:"sending,omitempty"`
	Receiving *WaitSnapshot `json:"receiving,omitempty"`
	// QueuedSends and QueuedReceives wait behind them.
	QueuedSends    int `json:"queued_sends"`
	QueuedReceives int `json:"queued_receives"`
	// Parked is set while the peer's SEND_REQUEST waits for a receive of
	// ours: the peer is blocked in a send.
	Parked *ParkedSnapshot `json:"parked,omitempty"`
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
	// Refuses says why sends to the peer are refused, if they are.
	Refuses string `json:"refuses,omitempty"`
	// NetworkError is the last error of the network towards the peer.
	NetworkError string `json:"network_error,omitempty"`
}

// WaitSnapshot says what a message waits for.
type WaitSnapshot struct {
	State string `json:"state"`
	// WaitsFor is a packet type, empty while the message is held back.
	WaitsFor string  `json:"waits_for,omitempty"`
	Seconds  float64 `json:"seconds"`
	Words    uint32  `json:"words"`
	Repeats  int     `json:"repeats"`
	Text     string  `json:"text"`
}

// ParkedSnapshot describes a SEND_REQUEST that waits for a receive.
type ParkedSnapshot struct {
	Call    string  `json:"call"`
	Seconds float64 `json:"seconds"`
}

// Snapshot reports what the rank is doing.
func (e *Engine) Snapshot() Snapshot {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := Snapshot{Rank: e.rank, Size: len(e.peers), Dropped: countReasons(&e.drops)}
	now := e.now()
	for _, p := range e.peers {
		if p != nil {
			s.Peers = append(s.Peers, p.snapshot(now))
		}
	}
	return s
}

func (p *peer) snapshot(now handshake.Instant) PeerSnapshot {
	s := PeerSnapshot{
		Rank: p.rank, Kind: p.cfg.Kind, Address: p.cfg.Address, Profile: p.cfg.Handshake.Profile.String(),
		QueuedSends: p.sendq.len(), QueuedReceives: p.recvq.len(),
		Sent: p.sendsDone, Received: p.recvsDone, Failed: p.failures,
		PacketsIn: p.packetsIn, BytesIn: p.bytesIn, BytesOut: p.bytesOut,
		PacketsOut: map[string]uint64{}, Dropped: countReasons(&p.drops), Events: map[string]uint64{},
	}
	if w, ok := p.pair.SendWait(); ok {
		s.Sending = waitSnapshot(w, now)
	}
	if w, ok := p.pair.RecvWait(); ok {
		s.Receiving = waitSnapshot(w, now)
	}
	if h, since, ok := p.pair.Parked(); ok {
		s.Parked = &ParkedSnapshot{Call: h.Call.String(), Seconds: (now - since).Seconds()}
	}
	for t, n := range p.packetsOut {
		if n > 0 {
			s.PacketsOut[protocol.Type(t).String()] = n
		}
	}
	for ev, n := range p.events {
		if n > 0 {
			s.Events[handshake.Event(ev).String()] = n
		}
	}
	if err := p.pair.Refuses(); err != nil {
		s.Refuses = err.Error()
	}
	if p.sendErr != nil {
		s.NetworkError = p.sendErr.Error()
	}
	return s
}

func waitSnapshot(w handshake.Wait, now handshake.Instant) *WaitSnapshot {
	s := &WaitSnapshot{
		State: w.State.String(), Seconds: (now - w.Since).Seconds(),
		Words: w.Words, Repeats: w.Repeats, Text: w.Describe(now),
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
	// Text is the wait in words.
	Text string
}

// Waits returns every message in the pairs' hands that has waited for at least
// the given time.
func (e *Engine) Waits(atLeast time.Duration) []Waiting {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	var ws []Waiting
	for _, p := range e.peers {
		if p == nil {
			continue
		}
		if w, ok := p.pair.SendWait(); ok && now-w.Since >= atLeast {
			ws = append(ws, Waiting{w, now - w.Since, w.Describe(now)})
		}
		if w, ok := p.pair.RecvWait(); ok && now-w.Since >= atLeast {
			ws = append(ws, Waiting{w, now - w.Since, w.Describe(now)})
		}
	}
	return ws
}

// Reset makes the engine forget what it knows of a peer that was restarted, so
// that sends to it are no longer refused. Messages under way are not touched.
func (e *Engine) Reset(rank int) error {
	if rank < 0 || rank >= len(e.peers) || rank == e.rank {
		return fmt.Errorf("rank %d: %w", rank, ErrRank)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.peers[rank].pair.Reset()
	return nil
}
