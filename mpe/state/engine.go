package state

import (
	"encoding/json"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Engine is what a rank is doing at one moment, in the form that the control
// socket serves.
type Engine struct {
	Rank  int    `json:"rank"`
	Size  int    `json:"size"`
	Peers []Peer `json:"peers"`
	// Posted and Unexpected are the depths of the matching queues, of all
	// communicators.
	Posted     int `json:"posted"`
	Unexpected int `json:"unexpected"`
	// AnySource is the oldest receive from any source that waits.
	AnySource *Wait `json:"any_source,omitempty"`
	// Calls are the collective calls under way; Collectives counts all that there were.
	Calls       []collective.Snapshot `json:"calls,omitempty"`
	Collectives []collective.Count    `json:"collectives,omitempty"`
	// EndedCalls are the collective calls that ended last, the oldest first.
	EndedCalls []collective.Ended `json:"ended_calls,omitempty"`
	// Disagreements counts communicators whose members are configured differently
	// for collectives, so that they go by the default table.
	Disagreements uint64 `json:"disagreements,omitempty"`
	// Dropped counts what came from addresses that are no rank's, by reason, and LastDrop is
	// the last of them.
	Dropped  DropCounts `json:"dropped,omitzero"`
	LastDrop *Drop      `json:"last_drop,omitempty"`
	// Ended is how long ago the last operation of the rank's program ended, in seconds; nil if
	// none has.
	Ended *float64 `json:"ended_seconds"`
	// LastFailed: that operation failed.
	LastFailed bool `json:"last_failed,omitempty"`
	// Uptime is how long ago the engine started, in seconds; 0 if that is not known.
	Uptime float64 `json:"engine_uptime_seconds,omitempty"`
}

// Describe puts waits and calls into words: an engine leaves that to be done without its lock.
func (e *Engine) Describe() {
	e.AnySource.describe()
	for i := range e.Peers {
		p := &e.Peers[i]
		p.Sending.describe()
		p.Receiving.describe()
		p.Left = p.LeftOpen.text(p.Rank)
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

// Peer is what a rank is doing with one peer.
type Peer struct {
	Rank    int     `json:"rank"`
	Kind    Kind    `json:"kind"`
	Address string  `json:"address"`
	Profile Profile `json:"profile"`
	// Transport is unknown to the engine: the owner of the engine's transports sets it.
	Transport Transport `json:"transport,omitempty"`
	// Sending and Receiving are the messages in the pair's hands, or the
	// oldest ones of a peer of the extended profile. Receiving may be a
	// receive that no message has matched.
	Sending   *Wait `json:"sending,omitempty"`
	Receiving *Wait `json:"receiving,omitempty"`
	// QueuedSends and QueuedReceives wait besides.
	QueuedSends    int `json:"queued_sends"`
	QueuedReceives int `json:"queued_receives"`
	// Deferred is set while the peer's SEND_REQUEST waits for a receive of
	// ours: the peer is blocked in a send.
	Deferred *Deferred `json:"deferred,omitempty"`
	// UnansweredClear is set while the peer's CLEAR_TO_SEND waits for DATA that no send
	// of this rank has: the peer is blocked in a receive.
	UnansweredClear *Deferred `json:"unanswered_clear,omitempty"`
	MessageCounts
	// PacketsOut counts packets by type; a DATA message is one.
	PacketsOut PacketCounts `json:"packets_out,omitzero"`
	PacketsIn  uint64       `json:"packets_in"`
	BytesIn    uint64       `json:"bytes_in"`
	BytesOut   uint64       `json:"bytes_out"`
	// Heard is how long ago the last packet of the peer arrived, used or not, in seconds; nil
	// if none has.
	Heard *float64 `json:"heard_seconds"`
	// Unreachable is how long ago an operation or the link last ended because the peer did not answer, in seconds;
	// nil if none has.
	Unreachable *float64 `json:"unreachable_seconds,omitempty"`
	// Dropped counts what arrived and was not used, by reason, and LastDrop is the last of it;
	// Events what else is worth knowing.
	Dropped  DropCounts  `json:"dropped,omitzero"`
	LastDrop *Drop       `json:"last_drop,omitempty"`
	Events   EventCounts `json:"events,omitzero"`
	// Unexpected counts messages from the peer that no receive has matched, and Unmatched are
	// the oldest of them.
	Unexpected int        `json:"unexpected"`
	Unmatched  []Envelope `json:"unmatched,omitempty"`
	// TakenOver counts messages that a receive took over while they were
	// arriving, and TakenOverBytes what was spared a second copy.
	TakenOver      uint64 `json:"taken_over,omitempty"`
	TakenOverBytes uint64 `json:"taken_over_bytes,omitempty"`
	// Extended is set for a peer of the extended profile.
	Extended *Extended `json:"extended,omitempty"`
	// Left describes the operation with the peer that a program left open when it ended, LeftOpen.
	Left     string   `json:"left,omitempty"`
	LeftOpen LeftOpen `json:"-"`
	// Refuses is the error that brought the peer into a dead end, if it is in one: operations with it are refused.
	Refuses string `json:"refuses,omitempty"`
	// NetworkError is the last error of the network towards the peer.
	NetworkError string `json:"network_error,omitempty"`
}

// RequestsCleared reports whether the peer asks to send although a message of it was cleared, and has not come: then both wait in
// one message, of which packets are lost, or the peer began again.
func (p *Peer) RequestsCleared() bool {
	w := p.Receiving
	return p.Deferred != nil && w != nil && (w.State == handshake.WaitData || w.State == handshake.Receiving)
}

// PacketCounts counts packets by protocol.Type. In JSON it is an object with the names of
// those that are not 0.
type PacketCounts [NumTypes]uint64

var typeNames = func() (names [NumTypes]string) {
	for t := range names {
		names[t] = protocol.Type(t).String()
	}
	return names
}()

// MarshalJSON implements json.Marshaler.
func (c PacketCounts) MarshalJSON() ([]byte, error) { return marshalCounts(c[:], typeNames[:]) }

// UnmarshalJSON implements json.Unmarshaler. Names that this version does not know are ignored.
func (c *PacketCounts) UnmarshalJSON(b []byte) error { return unmarshalCounts(c[:], typeNames[:], b) }

// Extended is the state of a link of the extended profile. Times are in
// seconds.
type Extended struct {
	// Session and PeerSession are the two sides' numbers; PeerSession is 0
	// until a packet of the peer has arrived.
	Session     protocol.Session `json:"session"`
	PeerSession protocol.Session `json:"peer_session"`
	// RoundTrip is smoothed; TimeOut is after how long a packet is retransmitted.
	RoundTrip float64 `json:"round_trip_seconds"`
	TimeOut   float64 `json:"time_out_seconds"`
	// Payload is the most bytes of payload that a packet has: over UDP what the path has
	// been found to carry.
	Payload int `json:"payload_bytes"`
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
	// CreditScarce: so little message credit is left, or was when the oldest send began, that a blocking send waits until its message is
	// received (E21).
	CreditScarce bool `json:"credit_scarce,omitempty"`
	// Retransmissions, TimeOuts and Losses count packets; Hellos those that probe
	// whether the peer is there.
	Retransmissions uint64 `json:"retransmissions"`
	TimeOuts        uint64 `json:"time_outs"`
	Losses          uint64 `json:"losses"`
	OutOfOrder      uint64 `json:"out_of_order"`
	Hellos          uint64 `json:"hellos"`
	// Stalled is how long nothing was acknowledged, if a time-out has expired since; otherwise 0.
	Stalled float64 `json:"stalled_seconds,omitempty"`
	// Probes are of the path's MTU.
	Probes uint64 `json:"probes"`
}

// MarshalJSON writes a round trip that is not known as null.
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

// Wait says what a message waits for.
type Wait struct {
	State handshake.State `json:"state"`
	// WaitsFor is 0 while the message is held back.
	WaitsFor        protocol.Type `json:"waits_for,omitempty"`
	Seconds         float64       `json:"age_seconds"`
	Words           uint32        `json:"words"`
	Retransmissions int           `json:"retransmissions"`
	// Cancelled: the call of a send has ended, and its transfer goes on.
	Cancelled bool `json:"cancelled,omitempty"`
	// Awaited: a caller sleeps until this operation or another one of the same peer and direction ends. It is not known of attached
	// programs, and of callers that poll.
	Awaited bool `json:"awaited,omitempty"`
	// Got is how much of the message has arrived, or is acknowledged, in bytes.
	Got int64 `json:"got_bytes,omitempty"`
	// Envelope is that of the operation. Its length is that of a send's message, or of a receive's buffer.
	Envelope Envelope `json:"envelope"`
	// Deferred is the call of the peer's SEND_REQUEST that the posted receive does not match.
	Deferred CallName `json:"deferred,omitempty"`
	// Text is made of Facts by Engine.Describe.
	Text  string     `json:"text"`
	Facts *WaitFacts `json:"-"`
}

// Deferred describes a SEND_REQUEST or CLEAR_TO_SEND that waits for the
// operation which it fits. Tag is that of its header, which only profile v0.9 carries.
type Deferred struct {
	Call    CallName `json:"call"`
	Tag     uint8    `json:"tag,omitempty"`
	Seconds float64  `json:"age_seconds"`
}

// Envelope is by what a message and a receive match.
type Envelope struct {
	// Tag is nil for any tag, for a message of a collective call, and where the wire carries none.
	Tag  *int   `json:"tag,omitempty"`
	Comm uint32 `json:"comm,omitempty"`
	// Datatype is empty for a receive of any.
	Datatype Datatype `json:"datatype,omitempty"`
	// Bytes is the length, or UnknownLength.
	Bytes int64 `json:"bytes"`
	// Collective and Number are the call that the message is of. Agreement: it is one by which the members of a
	// communicator agree before their first call, which is not named.
	Collective string `json:"collective,omitempty"`
	Number     int    `json:"number,omitempty"`
	Agreement  bool   `json:"agreement,omitempty"`
}

// Drop describes a packet that was dropped.
type Drop struct {
	Reason  DropReason `json:"reason"`
	Seconds float64    `json:"age_seconds"`
	// From is the address that it came from, if the transport knows it.
	From string `json:"from,omitempty"`
	// Source and Destination are the ranks that its header names; nil if it has none that can be read.
	Source      *uint32 `json:"source,omitempty"`
	Destination *uint32 `json:"destination,omitempty"`
	// Profile is the profile of which it is a packet, if that is another one than the peer's.
	Profile Profile `json:"profile,omitempty"`
}
