package state

import (
	"encoding/json"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Engine is a snapshot of a rank's engine, in the JSON form served by the control socket.
type Engine struct {
	Rank int `json:"rank"`
	Size int `json:"size"`
	// Peers lists the peers in rank order. In a cluster of more than 64 ranks, it may omit peers with which the rank has
	// exchanged nothing.
	Peers []Peer `json:"peers"`
	// Posted and Unexpected are the total lengths of the matching queues of all communicators.
	Posted     int `json:"posted"`
	Unexpected int `json:"unexpected"`
	// AnySource describes the oldest waiting receive from any source. It is nil if there is no such receive.
	AnySource *Wait `json:"any_source,omitempty"`
	// Calls lists the pending collective calls. Collectives counts all calls since the start.
	Calls       []collective.Snapshot  `json:"calls,omitempty"`
	Collectives []collective.CallCount `json:"collectives,omitempty"`
	// EndedCalls lists the most recently completed collective calls, oldest first.
	EndedCalls []collective.EndedCall `json:"ended_calls,omitempty"`
	// Disagreements counts communicators whose members are configured to choose different algorithms, and which
	// therefore use the default table.
	Disagreements uint64 `json:"disagreements,omitempty"`
	// Dropped counts packets from addresses that belong to no rank, by reason. LastDrop describes the last of them.
	Dropped  DropCounts `json:"dropped,omitzero"`
	LastDrop *Drop      `json:"last_drop,omitempty"`
	// SinceLastEnd is the time, in seconds, since an operation of the rank's program last ended. It is nil before the
	// first operation ends.
	SinceLastEnd *float64 `json:"ended_seconds"`
	// LastFailed means that this operation failed.
	LastFailed bool `json:"last_failed,omitempty"`
	// Uptime is the time, in seconds, since the engine started. It is 0 if unknown.
	Uptime float64 `json:"engine_uptime_seconds,omitempty"`
}

// Describe sets the descriptions of waits and calls. It does not need the engine's lock, unlike the rest of the
// snapshot.
func (e *Engine) Describe() {
	e.AnySource.describe()
	for i := range e.Peers {
		p := &e.Peers[i]
		p.Sending.describe()
		p.Receiving.describe()
		p.UnfinishedText = p.Unfinished.text(p.Rank)
	}
	for i := range e.Calls {
		e.Calls[i].Describe()
	}
}

func (w *Wait) describe() {
	if w != nil {
		w.Text, w.Facts = w.Facts.Text(), nil
	}
}

// Peer describes the state of a rank's communication with one peer.
type Peer struct {
	Rank    int     `json:"rank"`
	Kind    Kind    `json:"kind"`
	Address string  `json:"address"`
	Profile Profile `json:"profile"`
	// Transport names the transport to the peer. The engine does not know it, so the owner of the transports sets it.
	Transport Transport `json:"transport,omitempty"`
	// Sending and Receiving describe the oldest waiting operations; for a peer of the cloudfpga or v0.9 profile, the
	// operations that its handshake pair is handling. Receiving may be a receive that no message has matched yet.
	Sending   *Wait `json:"sending,omitempty"`
	Receiving *Wait `json:"receiving,omitempty"`
	// QueuedSends and QueuedReceives count the waiting operations other than Sending and Receiving.
	QueuedSends    int `json:"queued_sends"`
	QueuedReceives int `json:"queued_receives"`
	// Deferred is set while the peer's SEND_REQUEST waits for a local receive: the peer is blocked in a send.
	Deferred *Deferred `json:"deferred,omitempty"`
	// UnansweredClear is set while the peer's CLEAR_TO_SEND waits for DATA that no local send provides: the
	// peer is blocked in a receive.
	UnansweredClear *Deferred `json:"unanswered_clear,omitempty"`
	// LostAcks describes the ACKs of the last message received that the peer lacked. It is nil if it lacked none.
	LostAcks *LostAcks `json:"lost_acks,omitempty"`
	MessageCounts
	// PacketsOut counts packets by type. A DATA message counts as one packet.
	PacketsOut PacketCounts `json:"packets_out,omitzero"`
	PacketsIn  uint64       `json:"packets_in"`
	BytesIn    uint64       `json:"bytes_in"`
	BytesOut   uint64       `json:"bytes_out"`
	// SinceLastPacket is the time, in seconds, since the last packet from the peer was received, including dropped
	// packets. It is nil before the first packet.
	SinceLastPacket *float64 `json:"heard_seconds"`
	// Unreachable is the time, in seconds, since the peer's failure to answer last ended an operation or the session.
	// It is nil if this has never happened.
	Unreachable *float64 `json:"unreachable_seconds,omitempty"`
	// Dropped counts dropped packets by reason, and LastDrop describes the last of them. Events counts other notable
	// events.
	Dropped  DropCounts  `json:"dropped,omitzero"`
	LastDrop *Drop       `json:"last_drop,omitempty"`
	Events   EventCounts `json:"events,omitzero"`
	// Unexpected is the number of messages from the peer that no receive has matched. Unmatched describes the
	// oldest of these messages.
	Unexpected int        `json:"unexpected"`
	Unmatched  []Envelope `json:"unmatched,omitempty"`
	// TakenOver counts messages that a receive matched while they were arriving. TakenOverBytes counts those of their
	// bytes that arrived after the match, and were therefore copied only once.
	TakenOver      uint64 `json:"taken_over,omitempty"`
	TakenOverBytes uint64 `json:"taken_over_bytes,omitempty"`
	// Extended describes the link to a peer that uses the extended profile. It is nil for other peers.
	Extended *Extended `json:"extended,omitempty"`
	// UnfinishedText describes, as text, the operation with the peer that an earlier program did not finish. Unfinished
	// is the kind of that operation.
	UnfinishedText string     `json:"left,omitempty"`
	Unfinished     Unfinished `json:"-"`
	// Refuses is the error because of which the engine refuses all operations with the peer (a dead end). It is empty
	// if the engine accepts operations.
	Refuses string `json:"refuses,omitempty"`
	// NetworkError is the error of the last packet sent to the peer, or empty.
	NetworkError string `json:"network_error,omitempty"`
}

// RequestsCleared reports whether the peer requests to send a message although it has been cleared to send an earlier
// one that has not been received completely. Either both sides then wait for lost packets of the same message, or the
// peer has started over.
func (p *Peer) RequestsCleared() bool {
	w := p.Receiving
	return p.Deferred != nil && w != nil && (w.State == handshake.WaitData || w.State == handshake.Receiving)
}

// PacketCounts counts packets by protocol.Type. It is a JSON object that maps names to counts, without the zero counts.
type PacketCounts [NumTypes]uint64

var typeNames = func() (names [NumTypes]string) {
	for t := range names {
		names[t] = protocol.Type(t).String()
	}
	return names
}()

// MarshalJSON implements json.Marshaler.
func (c PacketCounts) MarshalJSON() ([]byte, error) { return marshalCounts(c[:], typeNames[:]) }

// UnmarshalJSON implements json.Unmarshaler. It ignores names unknown to this version.
func (c *PacketCounts) UnmarshalJSON(b []byte) error { return unmarshalCounts(c[:], typeNames[:], b) }

// Extended describes the state of a link that uses the extended profile. Times are in seconds.
type Extended struct {
	// Session and PeerSession are the session numbers of the two sides. PeerSession is 0 until a packet from the
	// peer is received.
	Session     protocol.Session `json:"session"`
	PeerSession protocol.Session `json:"peer_session"`
	// RoundTrip is the smoothed round-trip time. Timeout is the current retransmission timeout.
	RoundTrip float64 `json:"round_trip_seconds"`
	Timeout   float64 `json:"time_out_seconds"`
	// Payload is the maximum payload of a packet in bytes; over UDP, path MTU discovery determines it.
	Payload int `json:"payload_bytes"`
	// Window is the maximum number of packets in flight. InFlight is the current number.
	Window   int `json:"window"`
	InFlight int `json:"in_flight"`
	// Queued is the number of sends that have not begun, and Begun the number of other pending sends.
	Queued int `json:"queued"`
	Begun  int `json:"begun"`
	// MessageCredit is the number of messages that the peer still accepts, and EagerCredit the number of eager bytes.
	MessageCredit uint32 `json:"message_credit"`
	EagerCredit   uint32 `json:"eager_credit"`
	// CreditScarce means that message credit is low, or was low when the oldest send began. A blocking send then waits
	// until its message is received (E21).
	CreditScarce bool `json:"credit_scarce,omitempty"`
	// Retransmissions, Timeouts and Losses count packets. Hellos counts packets that probe whether the peer is alive.
	Retransmissions uint64 `json:"retransmissions"`
	Timeouts        uint64 `json:"time_outs"`
	Losses          uint64 `json:"losses"`
	OutOfOrder      uint64 `json:"out_of_order"`
	Hellos          uint64 `json:"hellos"`
	// Stalled is the time since the last acknowledgement, or 0 if no timeout has expired since.
	Stalled float64 `json:"stalled_seconds,omitempty"`
	// Probes counts probes of the path MTU.
	Probes uint64 `json:"probes"`
}

// MarshalJSON encodes the state, with an unknown round-trip time as null.
func (s Extended) MarshalJSON() ([]byte, error) {
	type plain Extended
	out := struct {
		plain
		RoundTrip *float64 `json:"round_trip_seconds"`
	}{plain: plain(s)}
	if s.RoundTrip > 0 {
		out.RoundTrip = &s.RoundTrip
	}
	return json.Marshal(out)
}

// Wait describes a waiting message.
type Wait struct {
	State handshake.State `json:"state"`
	// WaitsFor is the type of the awaited packet, or 0 while the message is held back.
	WaitsFor        protocol.Type `json:"waits_for,omitempty"`
	Seconds         float64       `json:"age_seconds"`
	Words           uint32        `json:"words"`
	Retransmissions int           `json:"retransmissions"`
	// Cancelled means that a send continues although its call has returned.
	Cancelled bool `json:"cancelled,omitempty"`
	// Awaited means that a caller sleeps until this operation, or another with the same peer and direction, completes.
	// It is not set for callers that poll, for attached programs without rings, and for attached programs that wait for
	// any of several operations.
	Awaited bool `json:"awaited,omitempty"`
	// BytesDone is the number of bytes received or acknowledged so far.
	BytesDone int64 `json:"got_bytes,omitempty"`
	// Envelope holds the attributes of the operation by which receives match messages. Envelope.Bytes is the length of
	// a send's message, or of a receive's buffer.
	Envelope Envelope `json:"envelope"`
	// Deferred is the call that the peer's SEND_REQUEST names, if that call does not match the posted receive.
	Deferred CallName `json:"deferred,omitempty"`
	// Text describes Facts. Engine.Describe sets it.
	Text  string     `json:"text"`
	Facts *WaitFacts `json:"-"`
}

// Deferred describes a SEND_REQUEST or CLEAR_TO_SEND that waits for a matching operation. Tag is the tag in its header,
// which only profile v0.9 carries.
type Deferred struct {
	Call    CallName `json:"call"`
	Tag     uint8    `json:"tag,omitempty"`
	Seconds float64  `json:"age_seconds"`
}

// LostAcks describes the ACKs of a message that did not arrive in time. Count is the number of ACKs after which the
// sender has retransmitted the message, and Seconds is the time since the last retransmission.
type LostAcks struct {
	Count   int     `json:"count"`
	Seconds float64 `json:"age_seconds"`
}

// Envelope holds the attributes by which receives match messages.
type Envelope struct {
	// Tag is nil for AnyTag, for messages of collective calls, and if the wire carries no tags.
	Tag  *int   `json:"tag,omitempty"`
	Comm uint32 `json:"comm,omitempty"`
	// Datatype is empty for a receive that accepts any datatype.
	Datatype Datatype `json:"datatype,omitempty"`
	// Bytes is the length, or UnknownLength.
	Bytes int64 `json:"bytes"`
	// Collective and Number identify the collective call that the message belongs to, if any. Agreement means that the
	// message belongs instead to the agreement that the members of a communicator reach before their first call.
	Collective string `json:"collective,omitempty"`
	Number     int    `json:"number,omitempty"`
	Agreement  bool   `json:"agreement,omitempty"`
}

// Drop describes a dropped packet.
type Drop struct {
	Reason  DropReason `json:"reason"`
	Seconds float64    `json:"age_seconds"`
	// From is the source address, if the transport knows it.
	From string `json:"from,omitempty"`
	// Source and Destination are the ranks in the packet's header, or nil if the header is unreadable.
	Source      *uint32 `json:"source,omitempty"`
	Destination *uint32 `json:"destination,omitempty"`
	// Profile is the packet's profile. It is set only if it differs from the peer's.
	Profile Profile `json:"profile,omitempty"`
}
