package state

import (
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// NumTypes is the length of tables indexed by protocol.Type.
const NumTypes = handshake.NumTypes

// RankCounters are an engine's counters that belong to no peer in particular. They
// count since New.
type RankCounters struct {
	Rank int
	// Posted and Unexpected are the depths of the matching queues now, of all
	// communicators.
	Posted, Unexpected int
	// AnySource is the oldest receive from any source that waits.
	AnySource OldestWait
	// Drops counts what came from addresses that are no rank's.
	Drops DropCounts
	// Collectives counts collective calls, and Disagreements the communicators whose
	// members do not choose algorithms alike.
	Collectives   []collective.Count
	Disagreements uint64
}

// MessageCounts are the counters of messages with one peer, in a state and for a scrape alike.
type MessageCounts struct {
	// Sent and Received count messages that ended well. Failed counts the others; a message that is longer than its
	// receive is received, and fails.
	Sent     uint64 `json:"sent"`
	Received uint64 `json:"received"`
	Failed   uint64 `json:"failed"`
	// Retransmissions counts packets that were retransmitted; all of a DATA message of a handshake is one.
	Retransmissions uint64 `json:"retransmissions"`
}

// Add adds other counts.
func (c *MessageCounts) Add(other *MessageCounts) {
	c.Sent += other.Sent
	c.Received += other.Received
	c.Failed += other.Failed
	c.Retransmissions += other.Retransmissions
}

// PeerCounters are an engine's counters of one peer. They count since New.
type PeerCounters struct {
	Rank int
	// Extended: the peer's profile is extended.
	Extended bool
	MessageCounts
	// SentBytes and ReceivedBytes are the payload of Sent and Received.
	SentBytes, ReceivedBytes uint64
	// PacketsOut and PacketsIn count datagrams, or packets where the transport
	// is a stream, by type; BytesOut and BytesIn the bytes in them, headers of
	// the protocol included. What came and was no packet is in Drops only.
	PacketsOut, PacketsIn [NumTypes]uint64
	BytesOut, BytesIn     [NumTypes]uint64
	// Unreachable counts messages, and links of the extended profile, that ended
	// because the peer did not answer.
	Unreachable uint64
	// Silent: no packet of the peer has arrived since it was last unreachable.
	Silent bool
	// Drops counts what came and was not used, and Events what else is worth counting.
	Drops  DropCounts
	Events EventCounts

	// How things stand now. QueuedSends are sends of which nothing was sent,
	// InFlight the others that have not ended; InFlightPackets are those of an
	// extended peer that are not acknowledged, and RoundTrip its smoothed round
	// trip, 0 before the first.
	QueuedSends, InFlight, InFlightPackets int
	RoundTrip                              time.Duration
	// OldestSend and OldestRecv are the oldest messages that wait.
	OldestSend, OldestRecv OldestWait
}

// Depths are the lengths of a rank's queues at one moment.
type Depths struct {
	// Posted and Unexpected are those of the matching queues, of all communicators.
	Posted, Unexpected int
	// Sends are those to other ranks that have not ended.
	Sends int
}

// OldestWait is for how long the oldest message of its kind has been waiting.
type OldestWait struct {
	// Waits: there is one.
	Waits bool
	// For is the packet that it waits for; 0 if it is held back behind others.
	For     protocol.Type
	Elapsed time.Duration
}
