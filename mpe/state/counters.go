package state

import (
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// NumTypes is the length of a table that is indexed by protocol.Type.
const NumTypes = handshake.NumTypes

// RankCounters holds those counters of an engine that do not belong to a particular peer. They count from the call of
// New.
type RankCounters struct {
	Rank int
	// Posted and Unexpected are the current total lengths of the matching queues of all communicators.
	Posted, Unexpected int
	// Probes is the number of callers that wait for a message without receiving it. SharedWaits is the number of
	// collective calls that wait in shared buffers.
	Probes, SharedWaits int
	// AnySource describes the oldest waiting receive from any source.
	AnySource OldestWait
	// Drops counts packets from addresses that belong to no rank.
	Drops DropCounts
	// Collectives counts collective calls. Disagreements counts communicators whose members are configured to choose
	// different algorithms.
	Collectives   []collective.CallCount
	Disagreements uint64
}

// MessageCounts counts the messages exchanged with one peer. Both state reports and metrics contain these counts.
type MessageCounts struct {
	// Sent and Received count successful messages, and Failed all others. A truncated message counts both as received
	// and as failed.
	Sent     uint64 `json:"sent"`
	Received uint64 `json:"received"`
	Failed   uint64 `json:"failed"`
	// Retransmissions counts retransmitted packets. The whole DATA of a handshake message counts as one packet.
	Retransmissions uint64 `json:"retransmissions"`
}

// Add adds the counts of other.
func (c *MessageCounts) Add(other *MessageCounts) {
	c.Sent += other.Sent
	c.Received += other.Received
	c.Failed += other.Failed
	c.Retransmissions += other.Retransmissions
}

// PeerCounters holds an engine's counters for one peer. They count from the call of New.
type PeerCounters struct {
	Rank int
	// Extended means that the peer uses the extended profile.
	Extended bool
	MessageCounts
	// SentBytes and ReceivedBytes count the payload bytes of the messages counted in Sent and Received.
	SentBytes, ReceivedBytes uint64
	// PacketsOut and PacketsIn count datagrams by type, or packets if the transport is a stream. BytesOut and BytesIn
	// count their bytes, including the protocol's headers. Received data that is not a packet is counted only in Drops.
	PacketsOut, PacketsIn [NumTypes]uint64
	BytesOut, BytesIn     [NumTypes]uint64
	// Unreachable counts messages and sessions of the extended profile that ended because the peer did not answer.
	Unreachable uint64
	// Silent means that no packet from the peer has been received since it was last declared unreachable.
	Silent bool
	// Drops counts dropped packets. Events counts other notable events.
	Drops  DropCounts
	Events EventCounts

	// The following fields describe the current state. QueuedSends is the number of sends that have not begun, and
	// InFlight the number of other pending sends. Receiving is the number of receives whose matched message is
	// incomplete. For an extended peer, InFlightPackets is the number of unacknowledged packets, and RoundTrip the
	// smoothed round-trip time, or 0 before the first sample.
	QueuedSends, InFlight, Receiving, InFlightPackets int
	RoundTrip                                         time.Duration
	// OldestSend and OldestRecv describe the oldest waiting send and receive.
	OldestSend, OldestRecv OldestWait
}

// Depths holds the current lengths of a rank's queues.
type Depths struct {
	// Posted and Unexpected are the total lengths of the matching queues of all communicators.
	Posted, Unexpected int
	// Sends is the number of pending sends to other ranks.
	Sends int
}

// OldestWait describes the wait of the message that has waited longest, among messages of one kind.
type OldestWait struct {
	// Waits is false if no message is waiting.
	Waits bool
	// Awaited is the type of packet that the message waits for. It is 0 while the message is queued behind others.
	Awaited protocol.Type
	Elapsed time.Duration
}
