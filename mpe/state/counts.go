package state

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// DropReason is the reason why a received packet was dropped.
type DropReason uint8

// These are the reasons for dropping a packet, for all profiles. Packages handshake and extended describe them.
const (
	DropNone DropReason = iota
	DropShort
	DropStartMark
	DropEndMark
	DropReserved
	DropCall
	DropType
	DropLength
	DropChecksum
	DropSourceRank
	DropDestination
	DropUnknownAddress
	DropDirection
	DropUnsolicited
	DropDuplicate
	DropStale
	// The following reasons apply to the cloudfpga and v0.9 profiles; DropStream applies to every stream.
	DropSize
	DropUnexpectedPayload
	DropDatatype
	DropGap
	DropBarrier
	DropStream
	// Extended profile.
	DropSession
	DropWindow
	DropAcknowledged
	DropCredit
	DropOrder
	DropMismatch
	DropCode
	numDropReasons
)

// NumDropReasons is the number of drop reasons. It is the length of tables that are indexed by reason.
const NumDropReasons = int(numDropReasons)

var dropNames = [NumDropReasons]string{
	"none", "short", "start_mark", "end_mark", "reserved", "call", "type", "length", "checksum",
	"source_rank", "destination", "unknown_address", "direction", "unsolicited", "duplicate", "stale",
	"size", "unexpected_payload", "datatype", "gap", "barrier", "stream",
	"session", "window", "acknowledged", "credit", "order", "mismatch", "code",
}

// String returns the reason's name in snake case.
func (r DropReason) String() string { return nameOf("reason", dropNames[:], int(r)) }

// MarshalText returns the name.
func (r DropReason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText decodes a reason's name. A name that this version does not know is decoded as NumDropReasons.
func (r *DropReason) UnmarshalText(name []byte) error {
	*r = numDropReasons
	if i := slices.Index(dropNames[:], string(name)); i >= 0 {
		*r = DropReason(i)
	}
	return nil
}

// Event is a notable event that is not an error.
type Event uint8

// These are the events of all profiles. Packages handshake and extended describe them.
const (
	EventNone Event = iota
	EventRetransmitted
	// Cloudfpga and v0.9 profiles.
	EventReacked
	EventCrossed
	EventRequestTakenAsAck
	EventStaleClearUsed
	EventRequestWasDuplicate
	EventClearWasDuplicate
	EventStartedOver
	EventRequestRetransmitted
	EventPadding
	EventDeliveredDuplicate
	EventEarlyData
	EventEarlyAck
	EventClearAfterDone
	EventSecondData
	EventRepeatedContent
	EventResumed
	EventWouldWedge
	EventWithdrawn
	// EventDiscarded means that a message for a program that no longer exists was received and dropped.
	EventDiscarded
	// Extended profile.
	EventConnected
	EventSessionChanged
	EventClosedByPeer
	EventProcessEnded
	EventUnreachable
	EventTimedOut
	EventSpurious
	EventLossDetected
	EventWindowFull
	EventCreditExhausted
	EventEagerExhausted
	EventRefused
	EventBlackHole
	numEvents
)

// NumEvents is the number of events. It is the length of tables that are indexed by event.
const NumEvents = int(numEvents)

var eventNames = [NumEvents]string{
	"", "retransmitted",
	"reacked", "crossed", "request_taken_as_ack", "stale_clear_used", "request_was_duplicate", "clear_was_duplicate",
	"started_over", "request_retransmitted", "padding", "delivered_duplicate",
	"early_data", "early_ack", "clear_after_done", "second_data", "repeated_content", "resumed", "would_wedge_fpga",
	"withdrawn", "discarded",
	"connected", "session_changed", "closed_by_peer", "process_ended", "peer_unreachable", "timed_out",
	"spurious_time_out", "loss_detected",
	"window_full", "credit_exhausted", "eager_exhausted", "refused", "black_hole",
}

// String returns the event's name in snake case.
func (e Event) String() string { return nameOf("event", eventNames[:], int(e)) }

func nameOf(kind string, names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", kind, i)
}

// DropCounts counts drops by reason, and EventCounts counts events. Both are JSON objects that map names to counts,
// without the zero counts.
type (
	DropCounts  [NumDropReasons]uint64
	EventCounts [NumEvents]uint64
)

// Add adds the counts of other.
func (c *DropCounts) Add(other *DropCounts) {
	for i, n := range other {
		c[i] += n
	}
}

// Add adds the counts of other.
func (c *EventCounts) Add(other *EventCounts) {
	for i, n := range other {
		c[i] += n
	}
}

// String lists the counts that are not zero, in the order of event numbers.
func (c EventCounts) String() string {
	var counted []string
	for event, n := range c {
		if n > 0 {
			counted = append(counted, fmt.Sprintf("%v %d", Event(event), n))
		}
	}
	return strings.Join(counted, ", ")
}

// MarshalJSON implements json.Marshaler.
func (c DropCounts) MarshalJSON() ([]byte, error) { return marshalCounts(c[:], dropNames[:]) }

// UnmarshalJSON implements json.Unmarshaler. It ignores names unknown to this version.
func (c *DropCounts) UnmarshalJSON(b []byte) error { return unmarshalCounts(c[:], dropNames[:], b) }

// MarshalJSON implements json.Marshaler.
func (c EventCounts) MarshalJSON() ([]byte, error) { return marshalCounts(c[:], eventNames[:]) }

// UnmarshalJSON implements json.Unmarshaler. It ignores names unknown to this version.
func (c *EventCounts) UnmarshalJSON(b []byte) error { return unmarshalCounts(c[:], eventNames[:], b) }

func marshalCounts(counts []uint64, names []string) ([]byte, error) {
	m := map[string]uint64{}
	for i, n := range counts {
		if n > 0 {
			m[names[i]] = n
		}
	}
	return json.Marshal(m)
}

func unmarshalCounts(counts []uint64, names []string, b []byte) error {
	var m map[string]uint64
	if err := json.Unmarshal(b, &m); err != nil {
		return err
	}
	clear(counts)
	for name, n := range m {
		if i := slices.Index(names, name); i >= 0 {
			counts[i] = n
		}
	}
	return nil
}
